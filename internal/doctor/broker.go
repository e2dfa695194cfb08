package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
)

// Broker is what carries commands to workers. Inspect is nil when it lives in
// the server.
type Broker struct {
	Inspect func(ctx context.Context) (bus.Inspection, error)
	Now     func() time.Time
}

// Name implements Check.
func (Broker) Name() string { return "nats" }

// slowBroker is a round trip that makes every step slow.
const slowBroker = 100 * time.Millisecond

// Look implements Check.
func (b Broker) Look(ctx context.Context) []Finding {
	if b.Inspect == nil {
		return []Finding{ok("", "NATS lives in the server")}
	}
	asked := b.Now()
	in, err := b.Inspect(ctx)
	if err != nil {
		return []Finding{failed(in.Where, "check NATS_URL and that NATS runs", err)}
	}
	found := []Finding{ok(in.Where, "NATS %s answers in %s", in.Version, in.RoundTrip.Round(time.Microsecond))}
	if in.RoundTrip > slowBroker {
		found[0] = warn(in.Where, "put NATS near the servers and workers", "NATS %s takes %s to answer", in.Version, in.RoundTrip.Round(time.Millisecond))
	}
	if in.JetStream != nil {
		return append(found, fail(in.Where, "start nats-server with -js, or enable JetStream for this account", "JetStream is not enabled"))
	}
	for _, wrong := range in.Wrong {
		found = append(found, failed(in.Where, "change the settings", wrong))
	}
	switch {
	case len(in.Missing) > 0:
		found = append(found, ok(in.Where, "streams that the first server makes: %s", strings.Join(in.Missing, ", ")))
	case len(in.Wrong) == 0:
		found = append(found, ok(in.Where, "streams and consumers are as they must be"))
	}
	if !in.Clock.IsZero() {
		found = append(found, Skew("broker", in.Where, in.Clock, asked, b.Now()))
	}
	return found
}
