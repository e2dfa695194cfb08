package schedule_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the rules of time zones must not depend on the machine

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/schedule"
)

func compile(t *testing.T, s event.ScheduleSpec) *schedule.Plan {
	t.Helper()
	p, faults := schedule.Compile(s)
	if len(faults) > 0 {
		t.Fatal(schedule.Err(faults))
	}
	return p
}

// ticks are the first n ticks after a time of the wall.
func ticks(t *testing.T, p *schedule.Plan, from string, n int) []string {
	t.Helper()
	at, err := schedule.Moment(from, p.Location)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for range n {
		at = p.Next(at)
		if at.IsZero() {
			return append(out, "none")
		}
		out = append(out, at.In(p.Location).Format("01-02T15:04:05-07:00"))
	}
	return out
}

func TestTicksFollowTheClockOnTheWall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		zone, cron, from string
		want             string
	}{
		"five fields":                           {"UTC", "30 2 * * *", "2026-01-01T00:00", "01-01T02:30:00+00:00 01-02T02:30:00+00:00"},
		"six fields":                            {"UTC", "*/20 0 2 * * *", "2026-01-01T00:00", "01-01T02:00:00+00:00 01-01T02:00:20+00:00"},
		"a descriptor":                          {"Asia/Tokyo", "@daily", "2026-01-01T00:00", "01-02T00:00:00+09:00 01-03T00:00:00+09:00"},
		"Sunday is 7 as well":                   {"UTC", "0 0 * * 7", "2026-04-04T12:00", "04-05T00:00:00+00:00 04-12T00:00:00+00:00"},
		"a leap day":                            {"UTC", "0 0 29 2 *", "2026-04-04T12:00", "02-29T00:00:00+00:00 02-29T00:00:00+00:00"},
		"a gap is made up for right after":      {"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00", "03-29T03:00:00+02:00 03-30T02:30:00+02:00"},
		"many in a gap are one":                 {"Europe/Berlin", "15,30 2 * * *", "2026-03-28T12:00", "03-29T03:00:00+02:00 03-30T02:15:00+02:00"},
		"a gap and the tick after it are one":   {"Europe/Berlin", "0 2,3 * * *", "2026-03-28T12:00", "03-29T03:00:00+02:00 03-30T02:00:00+02:00"},
		"every hour has no gap":                 {"Europe/Berlin", "15 * * * *", "2026-03-29T00:30", "03-29T01:15:00+01:00 03-29T03:15:00+02:00"},
		"a repeated hour runs once":             {"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00", "10-25T02:30:00+02:00 10-26T02:30:00+01:00"},
		"every hour goes on through it":         {"Europe/Berlin", "30 * * * *", "2026-10-25T01:45", "10-25T02:30:00+02:00 10-25T02:30:00+01:00 10-25T03:30:00+01:00"},
		"a zone without midnight":               {"America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00", "11-04T01:00:00-02:00 11-05T00:00:00-02:00"},
		"half an hour forward":                  {"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00", "10-04T02:30:00+11:00 10-05T02:15:00+11:00"},
		"half an hour back":                     {"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00", "04-05T01:45:00+11:00 04-06T01:45:00+10:30"},
		"a zone whose clock never changes":      {"Asia/Kolkata", "0 12 1 1,7 *", "2026-01-01T12:00", "07-01T12:00:00+05:30 01-01T12:00:00+05:30"},
		"from within the second hour":           {"Europe/Berlin", "45 2 * * *", "2026-10-25T03:00", "10-26T02:45:00+01:00"},
		"once a year over both changes":         {"Europe/Berlin", "0 8 24 12 *", "2026-01-01T00:00", "12-24T08:00:00+01:00 12-24T08:00:00+01:00"},
		"in the gap of a year that has it late": {"America/New_York", "30 2 8 3 *", "2026-01-01T00:00", "03-08T03:00:00-04:00 03-08T02:30:00-05:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, event.ScheduleSpec{Cron: c.cron, Timezone: c.zone})
			if got := strings.Join(ticks(t, p, c.from, len(strings.Fields(c.want))), " "); got != c.want {
				t.Errorf("%s in %s: %s, want %s", c.cron, c.zone, got, c.want)
			}
		})
	}
}

// From the second pass of a repeated hour nothing of the first comes again.
func TestTheSecondPassOfAnHourIsOver(t *testing.T) {
	t.Parallel()
	p := compile(t, event.ScheduleSpec{Cron: "45 2 * * *", Timezone: "Europe/Berlin"})
	second := time.Date(2026, 10, 25, 1, 10, 0, 0, time.UTC) // 02:10 for the second time
	if got := p.Next(second).In(p.Location).Format(time.RFC3339); got != "2026-10-26T02:45:00+01:00" {
		t.Errorf("next = %s", got)
	}
}

// Ticks ascend, and from wherever between two of them one asks, the answer is
// the later one: the series does not depend on who counts.
func TestTicksDoNotDependOnWhereOneStarts(t *testing.T) {
	t.Parallel()
	for _, s := range []event.ScheduleSpec{
		{Cron: "*/7 1-3 * * *", Timezone: "Europe/Berlin"},
		{Cron: "*/7 * * * *", Timezone: "Europe/Berlin"},
		{Cron: "5 0,1,2 * * 0", Timezone: "America/Sao_Paulo"},
		{Cron: "*/10 1,2 * * *", Timezone: "Australia/Lord_Howe"},
		{Every: "1h7m", Timezone: "Europe/Berlin"},
		{Cron: "0 0 1 * *", Timezone: "America/New_York"},
	} {
		p := compile(t, s)
		for _, from := range []time.Time{time.Date(2018, 10, 20, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC), time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC)} {
			for at := from; at.Before(from.AddDate(0, 1, 0)); {
				next := p.Next(at)
				if !next.After(at) {
					t.Fatalf("%+v: after %s comes %s", s, at, next)
				}
				for _, between := range []time.Time{at.Add(next.Sub(at) / 3), at.Add(next.Sub(at) * 9 / 10), next.Add(-1)} {
					if got := p.Next(between); !got.Equal(next) {
						t.Fatalf("%+v: after %s comes %s, but after %s %s", s, at, next, between, got)
					}
				}
				at = next
			}
		}
	}
}

func TestIntervalsCountFromAnAnchor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec event.ScheduleSpec
		from string
		want string
	}{
		"the full hour":    {event.ScheduleSpec{Every: "10m"}, "2026-01-01T00:03", "01-01T00:10:00+00:00 01-01T00:20:00+00:00"},
		"seconds alone":    {event.ScheduleSpec{Every: "90"}, "2026-01-01T00:00", "01-01T00:01:30+00:00 01-01T00:03:00+00:00"},
		"days":             {event.ScheduleSpec{Every: "2d"}, "2026-01-01T00:00", "01-03T00:00:00+00:00 01-05T00:00:00+00:00"},
		"from its start":   {event.ScheduleSpec{Every: "7m", Start: "2026-01-01T00:05:00Z"}, "2026-01-01T00:00", "01-01T00:05:00+00:00 01-01T00:12:00+00:00"},
		"until its end":    {event.ScheduleSpec{Every: "7m", Start: "2026-01-01T00:05:00Z", End: "2026-01-01T00:12:00Z"}, "2026-01-01T00:00", "01-01T00:05:00+00:00 none"},
		"a start on a day": {event.ScheduleSpec{Cron: "0 0 * * *", Start: "2026-06-01"}, "2026-01-01T00:00", "06-01T00:00:00+00:00 06-02T00:00:00+00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(ticks(t, compile(t, c.spec), c.from, 2), " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestJitterIsTheSameForTheSameTick(t *testing.T) {
	t.Parallel()
	p := compile(t, event.ScheduleSpec{Cron: "*/5 * * * *", Jitter: "20m"})
	at, moved, places := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0, map[time.Duration]bool{}
	for range 200 {
		at = p.Next(at)
		fire := p.FireAt(7, at)
		if fire.Before(at) || !fire.Before(p.Next(at)) {
			t.Fatalf("tick %s is run at %s", at, fire)
		}
		if !fire.Equal(p.FireAt(7, at)) {
			t.Fatal("the same tick is spread in two ways")
		}
		if !fire.Equal(p.FireAt(8, at)) {
			moved++
		}
		places[fire.Sub(at)] = true
	}
	if moved < 190 || len(places) < 190 {
		t.Errorf("%d of 200 ticks differ between schedules, at %d places", moved, len(places))
	}
}

func TestWrongSchedulesAreRefusedWithAPlaceAndARemedy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec   event.ScheduleSpec
		field  string
		offset int
		want   string
	}{
		"no time":           {event.ScheduleSpec{}, "cron", 0, "nothing says when"},
		"both":              {event.ScheduleSpec{Cron: "* * * * *", Every: "1m"}, "every", 0, "exclude each other"},
		"minute":            {event.ScheduleSpec{Cron: "61 * * * *"}, "cron", 0, `the minute "61"`},
		"weekday":           {event.ScheduleSpec{Cron: "0  2 * * MOO"}, "cron", 9, `the day of week "MOO" of the cron expression "0  2 * * MOO" (character 10)`},
		"six fields":        {event.ScheduleSpec{Cron: "0 0 25 * * *"}, "cron", 4, `the hour "25"`},
		"four fields":       {event.ScheduleSpec{Cron: "* * * *"}, "cron", 0, "has 4 fields"},
		"a step of nothing": {event.ScheduleSpec{Cron: "*/0 * * * *"}, "cron", 0, `the minute "*/0"`},
		"a day that never":  {event.ScheduleSpec{Cron: "0 0 30 2 *"}, "cron", 0, "never comes"},
		"every in cron":     {event.ScheduleSpec{Cron: "@every 10s"}, "cron", 0, "use every"},
		"a zone in cron":    {event.ScheduleSpec{Cron: "TZ=UTC 0 0 * * *"}, "cron", 0, "timezone"},
		"an unknown word":   {event.ScheduleSpec{Cron: "@fortnightly"}, "cron", 0, `no "@fortnightly"`},
		"zone":              {event.ScheduleSpec{Cron: "@daily", Timezone: "Mars/Base"}, "timezone", 0, `no time zone "Mars/Base"`},
		"the local zone":    {event.ScheduleSpec{Cron: "@daily", Timezone: "Local"}, "timezone", 0, "no time zone"},
		"too often":         {event.ScheduleSpec{Every: "200ms"}, "every", 0, "from 1s"},
		"half seconds":      {event.ScheduleSpec{Every: "1500ms"}, "every", 0, "whole seconds"},
		"overlap":           {event.ScheduleSpec{Every: "1m", Overlap: "never"}, "overlap", 0, "cancel_old"},
		"catch up":          {event.ScheduleSpec{Every: "1m", CatchUp: "some"}, "catch_up", 0, "latest"},
		"queue":             {event.ScheduleSpec{Every: "1m", QueueLimit: 1001}, "queue_limit", 0, "1 to 1000"},
		"jitter":            {event.ScheduleSpec{Every: "1m", Jitter: "1m"}, "jitter", 0, "below the interval"},
		"end before start":  {event.ScheduleSpec{Every: "1m", Start: "2026-01-02", End: "2026-01-01"}, "end", 0, "not after"},
		"start":             {event.ScheduleSpec{Every: "1m", Start: "tomorrow"}, "start", 0, "is no time"},
		"no version":        {event.ScheduleSpec{Every: "1m", Version: 1 << 31}, "version", 0, "there is no version"},
		"payload":           {event.ScheduleSpec{Every: "1m", Payload: []byte(`[1]`)}, "payload", 0, "object"},
		"payload key":       {event.ScheduleSpec{Every: "1m", Payload: []byte(`{"schedule":1}`)}, "payload", 0, "filled with the tick"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := schedule.Compile(c.spec)
			if len(faults) != 1 {
				t.Fatalf("faults %v", faults)
			}
			f := faults[0]
			if f.Field != c.field || f.Offset != c.offset || !strings.Contains(f.Error(), c.want) {
				t.Errorf("%s at %d: %v, want %s at %d with %q", f.Field, f.Offset, f, c.field, c.offset, c.want)
			}
		})
	}
}

func FuzzCron(f *testing.F) {
	for _, seed := range []string{"* * * * *", "0 0 29 2 *", "*/7 1-3 * * SUN", "@daily", "1 2 3 4 5 6", "\x00", "60 * * * *"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		p, faults := schedule.Compile(event.ScheduleSpec{Cron: expr, Timezone: "Europe/Berlin"})
		if len(faults) > 0 {
			if faults[0].Offset > len(expr) {
				t.Errorf("offset %d of %q", faults[0].Offset, expr)
			}
			return
		}
		at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
		for range 5 {
			next := p.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q: after %s comes %s", expr, at, next)
			}
			at = next
		}
	})
}
