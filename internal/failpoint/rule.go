package failpoint

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

var errDisabled = &event.Error{
	Code: event.Invalid, Message: "NOETL_FAILPOINTS is set, but this program was built without failpoints",
	Remedy: "unset it, or build with -tags failpoints for a test",
}

type action string

const (
	kill  action = "kill"
	fails action = "error"
	delay action = "delay"
)

// rule says what happens at a place, and when.
type rule struct {
	point  Point
	action action
	pause  time.Duration
	nth    int64
	every  bool
}

// due tells whether the rule applies to the n-th hit.
func (r rule) due(n int64) bool {
	if r.every {
		return n%r.nth == 0
	}
	return n == r.nth
}

// parse reads a specification.
func parse(spec string) ([]rule, error) {
	var rules []rule
	for part := range strings.SplitSeq(spec, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		r, err := parseRule(part)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(part string) (rule, error) {
	name, what, _ := strings.Cut(part, "=")
	r := rule{point: Point(name), nth: 1}
	if !slices.Contains(Points(), r.point) {
		return rule{}, event.Errorf(event.Invalid, "failpoint %q: no place of this name", name)
	}
	what, when, counted := strings.Cut(what, "@")
	if counted {
		digits, star := strings.CutPrefix(when, "*")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 1 {
			return rule{}, event.Errorf(event.Invalid, "failpoint %s: @%s: want a number from 1", name, when)
		}
		r.nth, r.every = n, star
	}
	verb, arg, _ := strings.Cut(what, ":")
	switch r.action = action(verb); r.action {
	case kill, fails:
		return r, nil
	case delay:
		d, err := time.ParseDuration(arg)
		if err != nil || d <= 0 {
			return rule{}, event.Errorf(event.Invalid, "failpoint %s: delay:%s: want a duration", name, arg)
		}
		r.pause = d
		return r, nil
	}
	return rule{}, event.Errorf(event.Invalid, "failpoint %s: %q is not kill, error or delay:DURATION", name, what)
}
