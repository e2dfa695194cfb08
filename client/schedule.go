package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// What is started by itself.
type (
	// ScheduleSpec is what a schedule says.
	ScheduleSpec = event.ScheduleSpec
	// Schedule is one as the server shows it.
	Schedule = event.ScheduleView
	// ScheduleRun is what became of one tick.
	ScheduleRun = event.ScheduleRunView
	// ScheduleBackfill is a range of ticks that is run afterwards.
	ScheduleBackfill = event.ScheduleBackfill
)

func scheduleAt(ref, what string) string { return "/api/schedules/" + url.PathEscape(ref) + what }

// CreateSchedule has a playbook started by itself.
func (c *Client) CreateSchedule(ctx context.Context, s ScheduleSpec) (Schedule, error) {
	var a Schedule
	return a, c.post(ctx, "/api/schedules", s, &a)
}

// UpdateSchedule replaces what a schedule says, by id or name.
func (c *Client) UpdateSchedule(ctx context.Context, ref string, s ScheduleSpec) (Schedule, error) {
	var a Schedule
	return a, c.call(ctx, http.MethodPut, scheduleAt(ref, ""), s, &a)
}

// ScheduleFilter selects schedules; zero fields do not restrict.
type ScheduleFilter struct {
	Path  string
	State string // active, paused or ended
}

// Schedules lists schedules by name.
func (c *Client) Schedules(ctx context.Context, f ScheduleFilter) ([]Schedule, error) {
	q := url.Values{}
	if f.Path != "" {
		q.Set("path", f.Path)
	}
	if f.State != "" {
		q.Set("state", f.State)
	}
	var a struct {
		Items []Schedule `json:"items"`
	}
	err := c.get(ctx, withQuery("/api/schedules", q), &a)
	return a.Items, err
}

// Schedule shows one.
func (c *Client) Schedule(ctx context.Context, ref string) (Schedule, error) {
	var a Schedule
	return a, c.get(ctx, scheduleAt(ref, ""), &a)
}

// DeleteSchedule removes one; executions it started go on.
func (c *Client) DeleteSchedule(ctx context.Context, ref string) error {
	return c.call(ctx, http.MethodDelete, scheduleAt(ref, ""), nil, nil)
}

// PauseSchedule stops one from firing.
func (c *Client) PauseSchedule(ctx context.Context, ref, reason string) (Schedule, error) {
	var a Schedule
	in := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	return a, c.post(ctx, scheduleAt(ref, "/pause"), in, &a)
}

// ResumeSchedule has one fire again, from its next tick on.
func (c *Client) ResumeSchedule(ctx context.Context, ref string) (Schedule, error) {
	var a Schedule
	return a, c.post(ctx, scheduleAt(ref, "/resume"), nil, &a)
}

// RunSchedule starts a run now, beside the ticks.
func (c *Client) RunSchedule(ctx context.Context, ref string) (ScheduleRun, error) {
	var a ScheduleRun
	return a, c.post(ctx, scheduleAt(ref, "/run"), nil, &a)
}

// BackfillRequest is a range of ticks to be run. Times are RFC 3339, or without
// an offset in the schedule's time zone.
type BackfillRequest struct {
	From        string `json:"from"`
	To          string `json:"to,omitempty"`          // now when empty
	Concurrency int    `json:"concurrency,omitempty"` // 1 when 0
}

// BackfillSchedule runs the ticks of a range that were not run, each once.
func (c *Client) BackfillSchedule(ctx context.Context, ref string, r BackfillRequest) (Schedule, error) {
	var a Schedule
	return a, c.post(ctx, scheduleAt(ref, "/backfill"), r, &a)
}

// ScheduleRuns tells what became of ticks before a time, the latest first. A
// zero time is now, a limit of 0 means 50.
func (c *Client) ScheduleRuns(ctx context.Context, ref string, before time.Time, limit int) ([]ScheduleRun, error) {
	q := url.Values{}
	if !before.IsZero() {
		q.Set("before", before.UTC().Format(time.RFC3339Nano))
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	var a struct {
		Items []ScheduleRun `json:"items"`
	}
	err := c.get(ctx, withQuery(scheduleAt(ref, "/runs"), q), &a)
	return a.Items, err
}

// ScheduleTimes is when a schedule runs next.
type ScheduleTimes struct {
	ID       event.StringID `json:"schedule_id"`
	Name     string         `json:"name"`
	Timezone string         `json:"timezone"`
	State    string         `json:"state"`
	Times    []time.Time    `json:"times"`
}

// ScheduleNext tells the next times of a schedule.
func (c *Client) ScheduleNext(ctx context.Context, ref string, count int) (ScheduleTimes, error) {
	var a ScheduleTimes
	return a, c.get(ctx, withQuery(scheduleAt(ref, "/next"), url.Values{"count": {strconv.Itoa(count)}}), &a)
}
