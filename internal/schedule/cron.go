package schedule

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/netresearch/go-cron"
)

const (
	maxExpression = 256
	allHours      = 1<<24 - 1
)

var cronParser = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// descriptors are the words that stand for a whole expression.
var descriptors = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// field is a part of an expression: what it is called and what may stand in it.
type field struct{ name, want string }

var cronFields = []field{
	{"second", "0-59"},
	{"minute", "0-59"},
	{"hour", "0-23"},
	{"day of month", "1-31"},
	{"month", "1-12 or JAN-DEC"},
	{"day of week", "0-7 or SUN-SAT"},
}

// parseCron reads an expression. The fault says which part is wrong and where
// it begins.
func parseCron(expr string) (*cron.SpecSchedule, *Fault) {
	wrong := func(offset int, message, remedy string) (*cron.SpecSchedule, *Fault) {
		return nil, &Fault{Field: "cron", Offset: offset, Message: message, Remedy: remedy}
	}
	text := strings.TrimSpace(expr)
	const shape = "write five fields (minute hour day month weekday), six with seconds first, or one of "
	switch {
	case !utf8.ValidString(expr) || len(expr) > maxExpression:
		return wrong(0, fmt.Sprintf("a cron expression is text of at most %d bytes", maxExpression), "")
	case strings.HasPrefix(text, "@every"):
		return wrong(0, "@every is not a cron expression", "use every: 10m instead of cron")
	case strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ="):
		return wrong(0, "a time zone does not belong into the expression", "give it as timezone")
	case strings.HasPrefix(text, "@"):
		return parseDescriptor(text, shape)
	}
	parts := strings.Fields(text)
	if len(parts) != 5 && len(parts) != 6 {
		return wrong(0, fmt.Sprintf("the cron expression %q has %d fields, want 5 or 6", expr, len(parts)), shape+strings.Join(descriptors, ", "))
	}
	at := 0
	for i, part := range parts {
		at += strings.Index(expr[at:], part)
		f := cronFields[i+6-len(parts)]
		if why := checkField(i+6-len(parts), part); why != "" {
			return wrong(at, fmt.Sprintf("the %s %q of the cron expression %q (character %d) is wrong: %s", f.name, part, expr, utf8.RuneCountInString(expr[:at])+1, why),
				fmt.Sprintf("want %s, a list a,b, a range a-b, a step */n, or *", f.want))
		}
		at += len(part)
	}
	parsed, err := cronParser.Parse(strings.Join(parts, " "))
	spec, ok := parsed.(*cron.SpecSchedule)
	if err != nil || !ok {
		return wrong(0, fmt.Sprintf("the cron expression %q is wrong: %v", expr, err), shape+strings.Join(descriptors, ", "))
	}
	spec.Location = time.UTC
	return spec, nil
}

func parseDescriptor(text, shape string) (*cron.SpecSchedule, *Fault) {
	parsed, err := cronParser.Parse(text)
	spec, ok := parsed.(*cron.SpecSchedule)
	if err != nil || !ok {
		return nil, &Fault{Field: "cron", Message: fmt.Sprintf("there is no %q", text), Remedy: shape + strings.Join(descriptors, ", ")}
	}
	spec.Location = time.UTC
	return spec, nil
}

// checkField tries one field among stars, so that a complaint is about it.
func checkField(place int, part string) string {
	stars := []string{"0", "*", "*", "*", "*", "*"}
	stars[place] = part
	_, err := cronParser.Parse(strings.Join(stars, " "))
	if err == nil {
		return ""
	}
	return err.Error()
}

// calendar is a cron expression in a time zone.
//
// The expression speaks of the clock on the wall. Where clocks are set forward,
// what falls into the gap happens once, right after it. Where they are set
// back, what falls into the hour that comes twice happens the first time only.
// An expression for every hour follows the real hours instead: nothing is made
// up for a gap, and it goes on through the hour that comes twice.
type calendar struct {
	spec   *cron.SpecSchedule
	loc    *time.Location
	hourly bool
}

// maxPeriods bounds the search over changes of the clock.
const maxPeriods = 64

func (c *calendar) next(after time.Time) time.Time {
	at := after.In(c.loc)
	bound := c.begin(at) // on the wall; what comes next is behind it
	for range maxPeriods {
		_, end := at.ZoneBounds()
		shift := offset(at)
		wall := c.spec.Next(bound)
		if wall.IsZero() {
			return time.Time{}
		}
		if instant := wall.Add(-shift); end.IsZero() || instant.Before(end) {
			return instant
		}
		then := offset(end)
		resumed := end.UTC().Add(then) // what the wall shows right after the change
		if then > shift && !c.hourly && wall.Before(resumed) {
			return end.UTC()
		}
		at, bound = end, resumed.Add(-1)
		if then < shift && !c.hourly {
			bound = end.UTC().Add(shift - 1)
		}
	}
	return time.Time{}
}

// begin is what the wall shows, moved behind the hour that comes twice when it
// is there for the second time.
func (c *calendar) begin(at time.Time) time.Time {
	shift := offset(at)
	wall := at.UTC().Add(shift)
	start, _ := at.ZoneBounds()
	if start.IsZero() || c.hourly {
		return wall
	}
	if before := offset(start.Add(-1)); before > shift {
		if end := start.UTC().Add(before - 1); wall.Before(end) {
			return end
		}
	}
	return wall
}

// offset is how far a zone's clock is from UTC.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
