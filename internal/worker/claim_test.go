package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

func TestAClaimIsTriedAgainWhileThePlaneIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begin := time.Now()
		p := &plane{}
		p.claim = func(r event.ClaimRequest) (*event.Command, error) {
			at = append(at, time.Since(begin))
			switch len(at) {
			case 1:
				return nil, event.Errorf(event.Unavailable, "away")
			case 2:
				return nil, &event.Error{Code: event.Unavailable, Message: "busy", RetryAfter: 3 * time.Second}
			}
			return command(r.EventID), nil
		}
		f := start(t, p, succeed, nil)
		f.publish(t, 11)
		elapse(20 * time.Second)
		equal(t, "outcomes", p.outcomes(), []outcome{done(11)})
		if len(at) != 3 || at[1] > time.Second || at[2]-at[1] != 3*time.Second {
			t.Errorf("claimed at %v, want soon and then as asked", at)
		}
	})
}

func TestARefusedClaimIsLookedAtAgainOnlyForUnknownReasons(t *testing.T) {
	t.Parallel()
	for reason, claims := range map[string]int{
		"": 1, "active_claim": 1, "already_terminal": 1, "execution_cancelled": 1, "execution_ended": 1, "waiting": 1, "attempts_exhausted": 1,
		"moon_phase": 2,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &plane{claim: func(event.ClaimRequest) (*event.Command, error) {
					return nil, &event.Error{Code: event.Conflict, Reason: reason, Message: "no"}
				}}
				f := start(t, p, succeed, nil)
				f.publish(t, 11)
				elapse(1500 * time.Millisecond)
				if got := len(p.claimed()); got != claims {
					t.Errorf("%d claims, want %d", got, claims)
				}
			})
		})
	}
}
