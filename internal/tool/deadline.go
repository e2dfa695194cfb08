package tool

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Bound derives the context of one action. Its limit is the timeout (or
// timeout_seconds) field, def when absent, and never above call.Timeout; 0
// means no limit of its own. The limit is returned for error messages.
func (c *Call) Bound(ctx context.Context, def time.Duration) (context.Context, context.CancelFunc, time.Duration, error) {
	limit, err := c.Fields().Duration("timeout", "timeout_seconds")
	if err != nil {
		return nil, nil, 0, err
	}
	if limit == 0 {
		limit = def
	}
	if c.Timeout > 0 && (limit == 0 || limit > c.Timeout) {
		limit = c.Timeout
	}
	if limit == 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, limit, nil
}

// Ended explains why a finished ctx stopped the action named by what:
// kind timeout after a deadline, kind cancelled otherwise.
func Ended(ctx context.Context, what string, limit time.Duration) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		msg := what + " ran out of time and was stopped"
		if limit > 0 {
			msg = fmt.Sprintf("%s did not finish within %s and was stopped", what, limit)
		}
		return &Error{Kind: KindTimeout, Code: "TIMEOUT", Message: msg, Retryable: true}
	}
	return &Error{Kind: KindCancelled, Code: "CANCELLED", Message: what + " was cancelled"}
}
