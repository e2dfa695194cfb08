// Package schedule says when: it reads what somebody wrote about a schedule,
// complains with a place and a remedy, and computes ticks from it. It must not
// know the time that is now, nor how anything is stored or started.
package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/event"
)

// What becomes of a tick while an earlier run goes on.
const (
	OverlapSkip      = "skip"
	OverlapQueue     = "queue"
	OverlapCancelOld = "cancel_old"
	OverlapAllow     = "allow"
)

// What becomes of ticks that nobody was there for.
const (
	CatchUpNone   = "none"
	CatchUpLatest = "latest"
	CatchUpAll    = "all"
)

// Bounds of what can be asked for.
const (
	MaxQueue    = 1000
	MaxCatchUp  = 1000
	maxName     = 200
	maxInterval = 366 * 24 * time.Hour
	maxJitter   = time.Hour
	maxWindow   = 366 * 24 * time.Hour

	defaultQueue   = 10
	defaultCatchUp = 100
	defaultWindow  = 24 * time.Hour
)

// TickKey is the key of a payload that tells a playbook its tick.
const TickKey = "schedule"

// Fault is what is wrong with a part of a schedule.
type Fault struct {
	Field   string // of event.ScheduleSpec, as it is written
	Offset  int    // in the text of the field
	Message string
	Remedy  string
}

func (f *Fault) Error() string {
	if f.Remedy == "" {
		return f.Field + ": " + f.Message
	}
	return f.Field + ": " + f.Message + " (" + f.Remedy + ")"
}

// Plan is a schedule that was checked.
type Plan struct {
	Spec          event.ScheduleSpec // with defaults filled in
	Every         time.Duration      // 0 with cron
	CatchUpWindow time.Duration
	Jitter        time.Duration
	Start, End    time.Time // zero without
	Location      *time.Location

	calendar *calendar
}

// Compile checks a schedule, but for its name and path, which have no say in
// when it runs.
func Compile(s event.ScheduleSpec) (*Plan, []*Fault) {
	c := compiler{plan: &Plan{Spec: s}}
	c.timing()
	c.policies()
	c.rest()
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return c.plan, nil
}

// Err is faults as one error; nil without any.
func Err(faults []*Fault) error {
	if len(faults) == 0 {
		return nil
	}
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.Field + ": " + f.Message
	}
	return &event.Error{Code: event.Invalid, Reason: "invalid_schedule", Message: strings.Join(texts, "; "), Remedy: faults[0].Remedy}
}

// CheckName says what is wrong with the name of a schedule.
func CheckName(name string) *Fault {
	switch {
	case strings.TrimSpace(name) == "":
		return &Fault{Field: "name", Message: "a name is needed"}
	case len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsGraphic(c) }):
		return &Fault{Field: "name", Message: fmt.Sprintf("a name is printable text of at most %d bytes", maxName)}
	case name == "." || name == "..":
		return &Fault{Field: "name", Message: fmt.Sprintf("%q means another place in an address", name), Remedy: "begin the name with a letter"}
	case digits(name):
		return &Fault{Field: "name", Message: fmt.Sprintf("%q reads like an id", name), Remedy: "begin the name with a letter"}
	}
	return nil
}

func digits(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

type compiler struct {
	plan   *Plan
	faults []*Fault
}

func (c *compiler) fault(field, remedy, format string, args ...any) {
	c.faults = append(c.faults, &Fault{Field: field, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (c *compiler) timing() {
	p, s := c.plan, &c.plan.Spec
	if s.Timezone == "" {
		s.Timezone = "UTC"
	}
	var err error
	if p.Location, err = time.LoadLocation(s.Timezone); err != nil || s.Timezone == "Local" {
		c.fault("timezone", "use a name such as Europe/Berlin, America/New_York or UTC", "there is no time zone %q", s.Timezone)
		p.Location = time.UTC
	}
	p.Start, p.End = c.moment("start", s.Start), c.moment("end", s.End)
	if !p.Start.IsZero() && !p.End.IsZero() && !p.End.After(p.Start) {
		c.fault("end", "", "the end is not after the start")
	}
	switch {
	case s.Cron != "" && s.Every != "":
		c.fault("every", "keep one of the two", "cron and every exclude each other")
	case s.Cron != "":
		spec, fault := parseCron(s.Cron)
		if fault != nil {
			c.faults = append(c.faults, fault)
			return
		}
		p.calendar = &calendar{spec: spec, loc: p.Location, hourly: spec.Hour&allHours == allHours}
		if p.calendar.next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			c.fault("cron", "check the day and the month", "the cron expression %q names a day that never comes", s.Cron)
		}
	case s.Every != "":
		p.Every = c.duration("every", s.Every, time.Second, maxInterval)
		if p.Every%time.Second != 0 {
			c.fault("every", "", "want whole seconds, got %s", s.Every)
		}
	default:
		c.fault("cron", "give cron: '0 2 * * *' or every: 10m", "nothing says when to run")
	}
}

func (c *compiler) policies() {
	p, s := c.plan, &c.plan.Spec
	s.Overlap = c.choice("overlap", s.Overlap, OverlapSkip, OverlapQueue, OverlapCancelOld, OverlapAllow)
	s.CatchUp = c.choice("catch_up", s.CatchUp, CatchUpLatest, CatchUpNone, CatchUpAll)
	s.QueueLimit = c.count("queue_limit", s.QueueLimit, defaultQueue, MaxQueue)
	s.CatchUpLimit = c.count("catch_up_limit", s.CatchUpLimit, defaultCatchUp, MaxCatchUp)
	p.CatchUpWindow = defaultWindow
	if s.CatchUpWindow != "" {
		p.CatchUpWindow = c.duration("catch_up_window", s.CatchUpWindow, time.Second, maxWindow)
	}
	if s.Jitter != "" {
		p.Jitter = c.duration("jitter", s.Jitter, 0, maxJitter)
		if p.Every > 0 && p.Jitter >= p.Every {
			c.fault("jitter", "take less than half of it", "a jitter of %s is not below the interval of %s", s.Jitter, s.Every)
		}
	}
}

func (c *compiler) rest() {
	s := &c.plan.Spec
	if s.Version < 0 || s.Version > math.MaxInt32 {
		c.fault("version", "leave it out for the highest", "there is no version %d", s.Version)
	}
	if s.MaxFailures < 0 {
		c.fault("max_failures", "0 never pauses", "want a number from 0 on, got %d", s.MaxFailures)
	}
	if s.Pool != "" {
		if err := event.CheckPool(s.Pool); err != nil {
			c.fault("pool", "", "%v", err)
		}
	}
	s.Payload = bytes.TrimSpace(s.Payload)
	if string(s.Payload) == "null" {
		s.Payload = nil
	}
	if len(s.Payload) == 0 {
		return
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(s.Payload, &members); err != nil || members == nil {
		c.fault("payload", `write it like {"name": "x"}`, "want an object")
		return
	}
	if _, ok := members[TickKey]; ok {
		c.fault("payload", "choose another key", "the key %s is filled with the tick", TickKey)
	}
}

func (c *compiler) choice(field, got string, options ...string) string {
	if got == "" {
		return options[0]
	}
	if !slices.Contains(options, got) {
		c.fault(field, "use "+strings.Join(options[:len(options)-1], ", ")+" or "+options[len(options)-1], "there is no %q", got)
	}
	return got
}

func (c *compiler) count(field string, got, usual, most int) int {
	if got == 0 {
		return usual
	}
	if got < 0 || got > most {
		c.fault(field, "", "want a number from 1 to %d, got %d", most, got)
	}
	return got
}

func (c *compiler) duration(field, text string, least, most time.Duration) time.Duration {
	d, err := Duration(text)
	if err != nil || d < least || d > most {
		c.fault(field, "write it like 30s, 10m, 1h30m or 2d", "want a duration from %s to %s, got %q", least, most, text)
		return least
	}
	return d
}

// Duration reads a duration; days may be written as d.
func Duration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if days, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("days %q: %w", days, err)
		}
		d := time.Duration(n) * 24 * time.Hour
		if rest == "" {
			return d, nil
		}
		more, err := time.ParseDuration(rest)
		return d + more, err
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(text)
}

func (c *compiler) moment(field, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	if t, err := Moment(text, c.plan.Location); err == nil {
		return t
	}
	c.fault(field, "write it like 2026-12-01T08:00:00Z, or 2026-12-01T08:00 in the schedule's time zone", "%q is no time", text)
	return time.Time{}
}

// Moment reads a time: RFC 3339, or without an offset in the given zone.
func Moment(text string, loc *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, loc); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time such as 2026-12-01T08:00:00Z", text)
}

// Next is the first tick after t; zero when there is none any more.
func (p *Plan) Next(t time.Time) time.Time {
	if !p.Start.IsZero() && t.Before(p.Start) {
		t = p.Start.Add(-1) // a tick may be at the very start
	}
	var next time.Time
	if p.Every > 0 {
		next = p.nextInterval(t)
	} else {
		next = p.calendar.next(t)
	}
	if next.IsZero() || !p.End.IsZero() && !next.Before(p.End) {
		return time.Time{}
	}
	return next.UTC()
}

// nextInterval counts from the start, or without one from 1970 in UTC, so that
// neither a restart nor a change shifts the ticks.
func (p *Plan) nextInterval(t time.Time) time.Time {
	anchor := p.Start
	if anchor.IsZero() {
		anchor = time.Unix(0, 0).UTC()
	}
	past := t.Sub(anchor)
	n := past / p.Every
	if past < 0 && past%p.Every != 0 {
		n--
	}
	return anchor.Add((n + 1) * p.Every)
}

// FireAt is when a tick is to be run: spread by the jitter, always the same for
// one tick of one schedule, and never as late as the tick after it.
func (p *Plan) FireAt(seed event.ID, tick time.Time) time.Time {
	spread := p.Jitter
	if spread <= 0 || tick.IsZero() {
		return tick
	}
	if next := p.Next(tick); !next.IsZero() {
		spread = min(spread, next.Sub(tick))
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d", seed, tick.UnixMicro())
	return tick.Add(time.Duration(scramble(h.Sum64()) % uint64(max(spread, 1)))).Truncate(time.Millisecond)
}

// scramble makes the high bits of a hash count in the low ones.
func scramble(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

// Count is how many ticks are after from and not after to, at most most.
func (p *Plan) Count(from, to time.Time, most int) int {
	n := 0
	for t := p.Next(from); n < most && !t.IsZero() && !t.After(to); t = p.Next(t) {
		n++
	}
	return n
}

// SameTimes tells whether two plans have the same ticks.
func (p *Plan) SameTimes(o *Plan) bool {
	return p.Spec.Cron == o.Spec.Cron && p.Every == o.Every && p.Spec.Timezone == o.Spec.Timezone && p.Start.Equal(o.Start) && p.End.Equal(o.End)
}
