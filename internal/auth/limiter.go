package auth

import (
	"net/netip"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/lru"
)

// limiter lets each address do something so often at once, and then again after
// a while. It remembers a bounded number of addresses: those seen last.
type limiter struct {
	burst float64
	every time.Duration // gives one back
	seen  *lru.Cache[string, bucket]
}

// bucket is how much an address has used up, as of a time.
type bucket struct {
	used float64
	at   time.Time
}

const maxAddresses = 4096

func newLimiter(burst int, every time.Duration) *limiter {
	return &limiter{burst: float64(burst), every: every, seen: lru.New[string, bucket](maxAddresses)}
}

func (l *limiter) level(b bucket, now time.Time) float64 {
	return max(0, b.used-max(0, float64(now.Sub(b.at))/float64(l.every)))
}

// wait is how long an address has to wait; 0 when it need not.
func (l *limiter) wait(address string, now time.Time) time.Duration {
	b, ok := l.seen.Get(network(address))
	if !ok {
		return 0
	}
	over := l.level(b, now) - l.burst + 1
	if over <= 0 {
		return 0
	}
	return max(time.Second, time.Duration(over*float64(l.every)))
}

// use counts one and tells whether it was still allowed.
func (l *limiter) use(address string, now time.Time) bool {
	allowed := false
	l.seen.Update(network(address), func(b bucket) bucket {
		level := l.level(b, now)
		if allowed = level+1 <= l.burst; allowed {
			level++
		}
		return bucket{level, now}
	})
	return allowed
}

// network is what counts as one address: all of IPv6 that one customer has.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return "other"
	}
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a.String()
	}
	p, _ := a.Prefix(64) // 64 fits an IPv6 address
	return p.String()
}

// tooMany is the answer to an address that failed too often.
func tooMany(wait time.Duration) error {
	return &event.Error{
		Code: event.Limit, Reason: "too_many_failures", Message: "too many failed attempts to sign in from this address",
		Remedy: "wait a moment and check the token", RetryAfter: wait.Round(time.Second),
	}
}
