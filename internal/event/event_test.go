package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestIDsAreReadLenientlyAndWrittenStrictly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want ID
		ok   bool
	}{
		{`320816801799737344`, 320816801799737344, true},
		{`"320816801799737344"`, 320816801799737344, true},
		{`null`, 0, true},
		{`0`, 0, true},
		{`1.5`, 0, false},
		{`"1.5"`, 0, false},
		{`1e3`, 0, false},
		{`-1`, 0, false},
		{`"+1"`, 0, false},
		{`""`, 0, false},
		{`"abc"`, 0, false},
		{`[1]`, 0, false},
		{`9223372036854775808`, 0, false},
	} {
		var id ID
		err := json.Unmarshal([]byte(tc.in), &id)
		if (err == nil) != tc.ok || id != tc.want {
			t.Errorf("%s is read as %d, %v", tc.in, id, err)
		}
	}
	b, err := json.Marshal(struct {
		Number ID
		Text   StringID
	}{320816801799737344, 320816801799737344})
	if err != nil || string(b) != `{"Number":320816801799737344,"Text":"320816801799737344"}` {
		t.Errorf("written as %s, %v", b, err)
	}
}

func TestOldSpellingsMeanWhatTheyMeant(t *testing.T) {
	t.Parallel()
	for _, spelling := range []Type{"playbook_cancelled", "playbook.cancelled", "execution.cancelled"} {
		if !spelling.IsTerminal() || spelling.Canonical() != PlaybookCancelled {
			t.Errorf("%s is not a cancellation", spelling)
		}
	}
	for _, spelling := range []Type{"playbook.initialized", "playbook.started", "playbook_started"} {
		if !spelling.IsExecution() || spelling.IsTerminal() {
			t.Errorf("%s is not a start", spelling)
		}
	}
	if !Type("action_completed").IsCommandEnd() || Type("call.done").IsCommandEnd() {
		t.Error("action_completed ends a command, call.done does not")
	}
	if e := (&Event{Type: "playbook_failed", NodeName: "x"}); e.NodeID() != "playbook" {
		t.Errorf("node id of a terminal event is %s", e.NodeID())
	}
}

func TestStatusIsDerivedFromTheName(t *testing.T) {
	t.Parallel()
	for name, want := range map[Type]string{
		"call.done": StatusCompleted, "step.exit": StatusCompleted, "command.completed": StatusCompleted,
		"call.error": StatusFailed, "command.failed": StatusFailed, "command.started": StatusRunning, "whatever": StatusRunning,
		"frame.abandoned": StatusAbandoned, "frame.committed": StatusCompleted, "stage.condoned": StatusRunning,
		"playbook.cancelled": StatusCancelled, "playbook_cancelled": StatusCancelled, "execution.cancelled": StatusCancelled, "command.cancelled": StatusCancelled,
		"subscription.message.dead_lettered": StatusFailed, "step_failed": StatusFailed, "step.skipped": StatusSkipped, "": StatusRunning,
	} {
		if got := name.DerivedStatus(); got != want {
			t.Errorf("%s derives %s, want %s", name, got, want)
		}
	}
}

func TestErrorsMatchByCode(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	err := fmt.Errorf("append: %w", Errorf(Conflict, "taken: %w", cause))
	switch {
	case !errors.Is(err, &Error{Code: Conflict}):
		t.Error("a conflict is not recognised by its code")
	case errors.Is(err, &Error{Code: NotFound}):
		t.Error("a conflict passes for another code")
	case !errors.Is(err, cause):
		t.Error("the cause is lost")
	case CodeOf(err) != Conflict || CodeOf(cause) != Internal:
		t.Errorf("codes are %s and %s", CodeOf(err), CodeOf(cause))
	}
	if got := (&Error{Message: "no", Remedy: "yes"}).Error(); got != "no (yes)" {
		t.Errorf("with its remedy it reads %q", got)
	}
}

func TestPoolsCanBePartOfASubject(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"shared": true, "gpu-2_b": true, "": false, "a.b": false, "a>": false, "*": false, "a b": false, "ü": false,
		string(make([]byte, 65)): false,
	} {
		if err := CheckPool(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
