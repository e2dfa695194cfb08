package auth

import (
	"context"
	"time"
)

const (
	purgeEvery = 10 * time.Minute
	purgeBatch = 1000
	usesEvery  = 5 * time.Second
	// keepTokens is how long tokens that ended are shown in lists.
	keepTokens = 90 * 24 * time.Hour
)

// Run writes down denials and uses, and removes what has ended, until ctx does.
// What is pending then is still written.
func (s *Service) Run(ctx context.Context) error {
	uses, purge := time.NewTicker(usesEvery), time.NewTicker(purgeEvery)
	defer uses.Stop()
	defer purge.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	wake := s.record.wake
	for {
		select {
		case <-ctx.Done():
			return s.drain(ctx)
		case <-wake: // others join the batch for a moment
			wake = nil
			pause.Reset(recordEvery)
		case <-pause.C:
			wake = s.record.wake
			if err := s.record.flush(ctx); err != nil && ctx.Err() == nil {
				s.o.Logger.Error("denials could not be recorded; they are tried again", "error", err)
				wake = nil
				pause.Reset(drainTime)
			}
		case <-uses.C:
			if err := s.flushUses(ctx); err != nil && ctx.Err() == nil {
				s.o.Logger.Warn("the last use of tokens could not be noted", "error", err)
			}
		case <-purge.C:
			s.purge(ctx)
		}
	}
}

func (s *Service) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := s.record.flush(ctx); err != nil {
		s.o.Logger.Error("denials could not be recorded", "error", err)
	}
	if err := s.flushUses(ctx); err != nil {
		s.o.Logger.Warn("the last use of tokens could not be noted", "error", err)
	}
	return nil
}

// purge removes what ended: each kind in batches, so that nobody waits long.
func (s *Service) purge(ctx context.Context) {
	now := s.o.Clock().UTC()
	kinds := map[string]func() (int, error){
		"sessions": func() (int, error) { return s.o.Store.PurgeSessions(ctx, now, purgeBatch) },
		"logins":   func() (int, error) { return s.o.Store.PurgeLogins(ctx, now, purgeBatch) },
		"tokens": func() (int, error) {
			return s.o.Store.PurgeTokens(ctx, bootstrapID, now.Add(-keepTokens), purgeBatch)
		},
	}
	if s.o.KeepActions > 0 {
		kinds["actions"] = func() (int, error) { return s.o.Store.PurgeActions(ctx, now.Add(-s.o.KeepActions), purgeBatch) }
	}
	for name, remove := range kinds {
		for n := purgeBatch; n == purgeBatch; {
			var err error
			if n, err = remove(); err != nil {
				if ctx.Err() == nil {
					s.o.Logger.Warn("what has ended could not be removed; it is tried again", "what", name, "error", err)
				}
				break
			}
		}
	}
}
