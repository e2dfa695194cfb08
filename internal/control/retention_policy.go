package control

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// RetentionRule says how long ended executions of a path are kept.
type RetentionRule struct {
	// Path is a playbook path: the rule is for it and what lies below it. "" is
	// for everything.
	Path string
	// Ages are how long executions are kept after their end, by status. Forever is
	// a word, too; a status that is missing is left to shorter paths.
	Ages map[string]time.Duration
	// KeepLast is how many of the newest ended executions of each path stay,
	// however old; 0 leaves that to shorter paths.
	KeepLast int

	said []string // the words it was made of
}

// RetentionPolicy is a set of rules. The zero value keeps everything for ever.
type RetentionPolicy []RetentionRule

const (
	// Forever is an age that never comes.
	Forever time.Duration = math.MaxInt64
	// LeastRetention is the shortest time executions are kept: what ended a moment
	// ago is still reported on and looked at.
	LeastRetention = time.Minute
	mostKeepLast   = 100000
	mostAge        = 100 * 365 * day
)

// retentionStatuses are the words for ends.
var retentionStatuses = map[string]string{
	"completed": event.StatusCompleted, "failed": event.StatusFailed, "cancelled": event.StatusCancelled, "canceled": event.StatusCancelled,
}

// ParseRetention reads a policy: rules separated by semicolons, each a path with
// a colon (none for everything) and what is said of it separated by commas: an
// age such as 30d for every status, status=age for one, or keep=N. A path begins
// a new rule behind a comma, too.
func ParseRetention(text string) (RetentionPolicy, error) {
	var policy RetentionPolicy
	for part := range strings.SplitSeq(text, ";") {
		rule := RetentionRule{Ages: map[string]time.Duration{}}
		said := false
		for item := range strings.SplitSeq(part, ",") {
			item = strings.TrimSpace(item)
			if path, rest, found := strings.Cut(item, ":"); found {
				if said {
					policy = append(policy, rule)
				}
				rule, said = RetentionRule{Path: strings.Trim(strings.TrimSpace(path), "/"), Ages: map[string]time.Duration{}}, false
				if rule.Path == "" {
					return nil, badRetention(item, "there is no path before the colon")
				}
				item = strings.TrimSpace(rest)
			}
			if item == "" {
				return nil, badRetention(part, "something is missing between the separators")
			}
			if err := rule.Say(item); err != nil {
				return nil, err
			}
			said = true
		}
		policy = append(policy, rule)
	}
	return policy, policy.Check()
}

func badRetention(item, why string) error {
	return &event.Error{
		Code: event.Invalid, Message: fmt.Sprintf("retention %q: %s", strings.TrimSpace(item), why),
		Remedy: "write it as 30d, failed=90d, keep=10 or team/a:completed=7d,failed=30d",
	}
}

// Say adds to a rule what an item of a policy says: an age, status=age, or keep=N.
func (r *RetentionRule) Say(item string) error {
	word, value, found := strings.Cut(item, "=")
	word, value = strings.ToLower(strings.TrimSpace(word)), strings.TrimSpace(value)
	if !found {
		age, err := ParseAge(item)
		if err != nil {
			return badRetention(item, err.Error())
		}
		if err := r.once("all", item); err != nil {
			return err
		}
		for _, status := range retentionStatuses {
			if _, said := r.Ages[status]; !said {
				r.Ages[status] = age
			}
		}
		return nil
	}
	if word == "keep" || word == "keep_last" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > mostKeepLast {
			return badRetention(item, fmt.Sprintf("want a number from 1 to %d", mostKeepLast))
		}
		r.KeepLast = n
		return r.once("keep", item)
	}
	status := retentionStatuses[word]
	if status == "" {
		return badRetention(item, fmt.Sprintf("%q is no end of an execution: want completed, failed, cancelled or keep", word))
	}
	age, err := ParseAge(value)
	if err != nil {
		return badRetention(item, err.Error())
	}
	r.Ages[status] = age
	return r.once(status, item)
}

// once refuses to hear a word of a rule twice.
func (r *RetentionRule) once(word, item string) error {
	if slices.Contains(r.said, word) {
		return badRetention(item, "the rule says this twice")
	}
	r.said = append(r.said, word)
	return nil
}

// ParseAge reads how long something is kept: a number with m, h, d, w or y, or
// forever.
func ParseAge(text string) (time.Duration, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "forever" {
		return Forever, nil
	}
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': day, 'w': 7 * day, 'y': 365 * day}
	if text == "" || units[text[len(text)-1]] == 0 {
		return 0, fmt.Errorf("%q is no age: want a number with m, h, d, w or y, such as 30d, or forever", text)
	}
	n, err := strconv.ParseInt(text[:len(text)-1], 10, 32)
	unit := units[text[len(text)-1]]
	switch {
	case err != nil || n < 0:
		return 0, fmt.Errorf("%q is no age: want a number with m, h, d, w or y, such as 30d, or forever", text)
	case n < int64(LeastRetention/unit) || n == 0:
		return 0, fmt.Errorf("%q is too short: at least %s pass before anything is removed", text, LeastRetention)
	case n > int64(mostAge/unit):
		return 0, fmt.Errorf("%q is too long: write forever", text)
	}
	return time.Duration(n) * unit, nil
}

// Check refuses a policy that says two things of one path.
func (p RetentionPolicy) Check() error {
	seen := map[string]bool{}
	for _, r := range p {
		if seen[r.Path] {
			return event.Errorf(event.Invalid, "retention: there are two rules for %s: write one", cmp.Or(r.Path, "everything"))
		}
		seen[r.Path] = true
		if len(r.Ages) == 0 && r.KeepLast == 0 {
			return event.Errorf(event.Invalid, "retention: the rule for %s says nothing", cmp.Or(r.Path, "everything"))
		}
	}
	return nil
}

// String is the policy as it is written, the longest paths last.
func (p RetentionPolicy) String() string {
	rules := slices.Clone(p)
	slices.SortFunc(rules, func(a, b RetentionRule) int {
		return cmp.Or(cmp.Compare(len(a.Path), len(b.Path)), cmp.Compare(a.Path, b.Path))
	})
	var out []string
	for _, r := range rules {
		out = append(out, r.String())
	}
	return strings.Join(out, ";")
}

// String is the rule as it is written.
func (r RetentionRule) String() string {
	var items []string
	for _, word := range []string{"completed", "failed", "cancelled"} {
		if age, said := r.Ages[retentionStatuses[word]]; said {
			items = append(items, word+"="+ageText(age))
		}
	}
	if r.KeepLast > 0 {
		items = append(items, "keep="+strconv.Itoa(r.KeepLast))
	}
	text := strings.Join(items, ",")
	if r.Path != "" {
		text = r.Path + ":" + text
	}
	return text
}

func ageText(age time.Duration) string {
	switch {
	case age == Forever:
		return "forever"
	case age%day == 0:
		return fmt.Sprintf("%dd", age/day)
	case age%time.Hour == 0:
		return fmt.Sprintf("%dh", age/time.Hour)
	}
	return fmt.Sprintf("%dm", age/time.Minute)
}

func (r *RetentionRule) covers(path string) bool {
	return r.Path == "" || path == r.Path || strings.HasPrefix(path, r.Path+"/")
}

// Age is how long an execution is kept after its end, and the rule that says
// so: the longest path that says something of the status. Forever without one.
func (p RetentionPolicy) Age(path, status string) (time.Duration, *RetentionRule) {
	age, best := Forever, -1
	for i := range p {
		if a, said := p[i].Ages[status]; said && p[i].covers(path) && (best < 0 || len(p[i].Path) > len(p[best].Path)) {
			age, best = a, i
		}
	}
	if best < 0 {
		return Forever, nil
	}
	return age, &p[best]
}

// KeepLast is how many of the newest ended executions of a path stay.
func (p RetentionPolicy) KeepLast(path string) int {
	n, best := 0, -1
	for i := range p {
		if p[i].KeepLast > 0 && p[i].covers(path) && (best < 0 || len(p[i].Path) > len(p[best].Path)) {
			n, best = p[i].KeepLast, i
		}
	}
	return n
}

// orElse is the policy with an age for what its rules say nothing of.
func (p RetentionPolicy) orElse(age time.Duration) RetentionPolicy {
	out := slices.Clone(p)
	everything := slices.IndexFunc(out, func(r RetentionRule) bool { return r.Path == "" })
	rule := RetentionRule{Ages: map[string]time.Duration{}}
	if everything >= 0 {
		rule.KeepLast = out[everything].KeepLast
		for status, said := range out[everything].Ages {
			rule.Ages[status] = said
		}
	}
	for _, status := range retentionStatuses {
		if _, said := rule.Ages[status]; !said {
			rule.Ages[status] = age
		}
	}
	if everything < 0 {
		return append(out, rule)
	}
	out[everything] = rule
	return out
}

// shortest is the least age of all rules; Forever when nothing ever goes.
func (p RetentionPolicy) shortest() time.Duration {
	least := Forever
	for _, r := range p {
		for _, age := range r.Ages {
			least = min(least, age)
		}
	}
	return least
}
