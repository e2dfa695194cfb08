package pipeline

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/tool"
)

// maxDelay bounds the wait between two tries, whatever a rule computes or a
// server asks for.
const maxDelay = time.Hour

// next applies the first matching rule of a task to its outcome and returns
// the index of the task that follows; one past the last ends the command.
func (s *run) next(ctx context.Context, i int, out *outcome) (int, *tool.Error) {
	t := s.plan.tasks[i]
	act := playbook.Action{}
	if t.Policy != nil {
		v := &view{names: s.names, run: s, task: t.Task, attempt: out.attempt, output: envelope{out}}
		rule := s.match(t, v)
		if err := s.names.unavailable(); err != nil {
			return 0, err
		}
		if rule != nil {
			act = rule.Then
			if err := s.assign(act.Set, v); err != nil {
				return 0, err
			}
		}
	}
	if act.Do == "" {
		act.Do = playbook.Continue
		if out.err != nil {
			act.Do = playbook.Fail
		}
	}
	if act.Do == playbook.Retry {
		return s.again(ctx, i, out, &act)
	}
	if out.err == nil {
		s.attempts[i] = 0
	} else {
		s.attempts[i]++
	}
	return s.move(i, out, &act)
}

// match finds the first rule that holds. A condition that cannot be computed
// does not hold; the log says so, because its author meant something else.
func (s *run) match(t *task, in jinja.Scope) *playbook.Rule {
	for i := range t.Policy.Rules {
		rule := &t.Policy.Rules[i]
		if rule.When == nil {
			return rule
		}
		ok, err := rule.When.Truth(in)
		if err != nil {
			fmt.Fprintf(s.log, "policy rule %d of %s counts as false: %s\n", i+1, t.Label, templateError(err, "when").Message)
			continue
		}
		if ok {
			return rule
		}
	}
	return nil
}

// move carries out every verb but retry.
func (s *run) move(i int, out *outcome, act *playbook.Action) (int, *tool.Error) {
	switch act.Do {
	case playbook.Break:
		return len(s.plan.tasks), nil
	case playbook.Jump:
		return s.target(i, act.To)
	case playbook.Fail:
		if out.err != nil {
			return 0, out.err
		}
		return 0, &tool.Error{Kind: tool.KindLogic, Code: "POLICY_FAIL", Message: "a policy rule said fail"}
	}
	return i + 1, nil
}

func (s *run) target(i int, to string) (int, *tool.Error) {
	switch to {
	case "previous", "prev", "_previous", "@previous":
		if i == 0 {
			return 0, tool.ConfigErrorf("a policy rule jumps to the previous task, but this is the first")
		}
		return i - 1, nil
	}
	for j, t := range s.plan.tasks {
		if t.Label == to {
			return j, nil
		}
	}
	return 0, tool.ConfigErrorf("a policy rule jumps to task %q, which does not exist", to)
}

// again carries out a retry: the same task, after a pause, or the end of the
// command when its tries are used up.
func (s *run) again(ctx context.Context, i int, out *outcome, act *playbook.Action) (int, *tool.Error) {
	s.attempts[i]++
	tries := s.attempts[i]
	if tries >= max(act.Attempts, 1) {
		if out.err != nil {
			return 0, out.err
		}
		return 0, &tool.Error{
			Kind: tool.KindLogic, Code: "RETRIES_EXHAUSTED",
			Message: fmt.Sprintf("a policy rule asked for another try, but all %d are used", tries),
		}
	}
	d := delay(act, tries)
	if out.err != nil {
		d = max(d, out.err.RetryAfter)
	}
	return i, s.pause(ctx, min(d, maxDelay))
}

// pause waits before the next try of the task in hand: here, or without a
// worker when it is long.
func (s *run) pause(ctx context.Context, d time.Duration) *tool.Error {
	if least := s.cmd.Meta.ParkAfter; least > 0 && d.Seconds() >= least {
		if end, ok := ctx.Deadline(); ok {
			d = min(d, max(time.Until(end), 0))
		}
		return s.suspend(ctx, &event.Park{Delay: d.Seconds()}, nil)
	}
	if err := s.opt.Sleep(ctx, d); err != nil {
		if ctx.Err() == nil {
			return &tool.Error{Kind: tool.KindInternal, Message: err.Error()}
		}
		return tool.Ended(ctx, "the command", 0)
	}
	return nil
}

// delay is the pause before the next try after so many.
func delay(act *playbook.Action, tries int) time.Duration {
	seconds := act.Delay
	switch act.Backoff {
	case "none", "":
		return 0
	case "linear":
		seconds *= float64(tries)
	case "exponential":
		seconds *= math.Pow(2, float64(tries-1))
	}
	if !(seconds > 0) { // also when it is not a number
		return 0
	}
	return time.Duration(math.Min(seconds, maxDelay.Seconds()) * float64(time.Second))
}
