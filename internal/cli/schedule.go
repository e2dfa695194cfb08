package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// scheduleCommand is about what is started by itself.
type scheduleCommand struct {
	Create   scheduleCreateCommand   `cmd:"" help:"Have a registered playbook started by itself."`
	Update   scheduleUpdateCommand   `cmd:"" help:"Change a schedule; what is not given stays."`
	List     scheduleListCommand     `cmd:"" help:"List schedules."`
	Show     scheduleShowCommand     `cmd:"" help:"Show a schedule."`
	Next     scheduleNextCommand     `cmd:"" help:"Tell when a schedule runs next."`
	Runs     scheduleRunsCommand     `cmd:"" help:"Tell what became of the ticks of a schedule."`
	Pause    schedulePauseCommand    `cmd:"" help:"Stop a schedule from firing."`
	Resume   scheduleResumeCommand   `cmd:"" help:"Have a schedule fire again."`
	Run      scheduleRunCommand      `cmd:"" help:"Start a run now, beside the ticks."`
	Backfill scheduleBackfillCommand `cmd:"" help:"Run the ticks of a range that were not run, each once."`
	Delete   scheduleDeleteCommand   `cmd:"" help:"Remove a schedule; executions it started go on."`
}

// scheduleFlags say when and how a schedule fires.
type scheduleFlags struct {
	Cron          string `help:"Five fields (minute hour day month weekday), six with seconds first, or a word such as @daily." placeholder:"EXPR"`
	Every         string `help:"An interval such as 30s, 10m or 2d." placeholder:"DURATION"`
	Timezone      string `name:"tz" aliases:"timezone" help:"Time zone of --cron, such as Europe/Berlin; UTC unless given." placeholder:"ZONE"`
	Overlap       string `help:"While an earlier run goes on: skip, queue, cancel_old or allow." placeholder:"POLICY"`
	QueueLimit    int    `help:"How many ticks wait with --overlap queue." placeholder:"N"`
	CatchUp       string `help:"Ticks no server was there for: none, latest or all." placeholder:"POLICY"`
	CatchUpLimit  int    `help:"How many of them are run with --catch-up all." placeholder:"N"`
	CatchUpWindow string `help:"How old they may be." placeholder:"DURATION"`
	Jitter        string `help:"Delay each tick by up to this." placeholder:"DURATION"`
	Start         string `help:"No tick before this time." placeholder:"TIME"`
	End           string `help:"No tick from this time on." placeholder:"TIME"`
	Version       int    `help:"Version of the playbook; the highest unless given." placeholder:"N"`
	Pool          string `help:"Worker pool of the executions." placeholder:"POOL"`
	MaxFailures   int    `help:"Pause after so many failed runs in a row." placeholder:"N"`
	payloadFlags
}

// over puts what was given over what a schedule says.
func (f *scheduleFlags) over(s *client.ScheduleSpec) error {
	if f.Cron != "" {
		s.Cron, s.Every = f.Cron, f.Every
	} else if f.Every != "" {
		s.Cron, s.Every = "", f.Every
	}
	for _, v := range []struct {
		to   *string
		from string
	}{
		{&s.Timezone, f.Timezone},
		{&s.Overlap, f.Overlap},
		{&s.CatchUp, f.CatchUp},
		{&s.CatchUpWindow, f.CatchUpWindow},
		{&s.Jitter, f.Jitter},
		{&s.Start, f.Start},
		{&s.End, f.End},
		{&s.Pool, f.Pool},
	} {
		if v.from != "" {
			*v.to = v.from
		}
	}
	for _, v := range []struct {
		to   *int
		from int
	}{{&s.QueueLimit, f.QueueLimit}, {&s.CatchUpLimit, f.CatchUpLimit}, {&s.Version, f.Version}, {&s.MaxFailures, f.MaxFailures}} {
		if v.from != 0 {
			*v.to = v.from
		}
	}
	payload, err := f.value()
	if err == nil && payload != nil {
		s.Payload = payload
	}
	return err
}

type scheduleCreateCommand struct {
	serverFlags
	Path string `arg:"" help:"Path of the playbook in the catalog."`
	Name string `help:"What the schedule is called; the path unless given." placeholder:"NAME"`
	scheduleFlags
	outputFlags
}

// Run makes a schedule.
func (c *scheduleCreateCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	spec := client.ScheduleSpec{Path: c.Path, Name: c.Name}
	if err := c.over(&spec); err != nil {
		return err
	}
	s, err := cl.CreateSchedule(ctx, spec)
	if err != nil {
		return err
	}
	return c.object(env, s, s.Name, func() error { return showSchedule(env, s) })
}

type scheduleUpdateCommand struct {
	serverFlags
	Schedule string `arg:"" help:"Name or id of the schedule."`
	Path     string `help:"Another playbook." placeholder:"PATH"`
	Name     string `help:"Another name." placeholder:"NAME"`
	scheduleFlags
	outputFlags
}

// Run changes a schedule.
func (c *scheduleUpdateCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	s, err := cl.Schedule(ctx, c.Schedule)
	if err != nil {
		return err
	}
	spec := s.ScheduleSpec
	spec.Path, spec.Name = orText(c.Path, spec.Path), orText(c.Name, spec.Name)
	if err := c.over(&spec); err != nil {
		return err
	}
	if s, err = cl.UpdateSchedule(ctx, event.ID(s.ID).String(), spec); err != nil {
		return err
	}
	return c.object(env, s, s.Name, func() error { return showSchedule(env, s) })
}

type scheduleListCommand struct {
	serverFlags
	Path  string `help:"Only those of this playbook." placeholder:"PATH"`
	State string `help:"Only those in this state: active, paused or ended." placeholder:"STATE"`
	outputFlags
}

// Run prints a table of schedules.
func (c *scheduleListCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	all, err := cl.Schedules(ctx, client.ScheduleFilter{Path: c.Path, State: c.State})
	if err != nil {
		return err
	}
	t := newTable("SCHEDULE", "PLAYBOOK", "WHEN", "STATE", "NEXT", "LAST", "STATUS")
	t.empty = "no schedules"
	for _, s := range all {
		t.add(s.Name, s.Name, s.Path, when(s), s.State, shownMoment(s.NextAt), shownMoment(s.LastTick), orText(s.LastStatus, "-"))
	}
	return c.list(env, all, t)
}

// when is a schedule's timing in a few words.
func when(s client.Schedule) string {
	if s.Every != "" {
		return "every " + s.Every
	}
	if s.Timezone == "" || s.Timezone == "UTC" {
		return s.Cron
	}
	return s.Cron + " " + s.Timezone
}

func shownMoment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

type scheduleRef struct {
	serverFlags
	Schedule string `arg:"" help:"Name or id of the schedule."`
	outputFlags
}

// change prints a schedule that a call gives.
func (c *scheduleRef) change(env *Env, f func(*client.Client) (client.Schedule, error)) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	s, err := f(cl)
	if err != nil {
		return err
	}
	return c.object(env, s, s.Name, func() error { return showSchedule(env, s) })
}

type scheduleShowCommand struct{ scheduleRef }

// Run prints one schedule.
func (c *scheduleShowCommand) Run(ctx context.Context, env *Env) error {
	return c.change(env, func(cl *client.Client) (client.Schedule, error) { return cl.Schedule(ctx, c.Schedule) })
}

// showSchedule tells people of a schedule.
func showSchedule(env *Env, s client.Schedule) error {
	t := newTable("", "")
	row := func(name, text string) {
		if text != "" && text != "-" {
			t.add(name, name, text)
		}
	}
	row("schedule", s.Name+"  ("+event.ID(s.ID).String()+")")
	row("playbook", playbookOf(s))
	row("when", when(s))
	row("state", s.State)
	row("paused", pausedText(s))
	row("next", shownMoment(s.NextAt))
	row("last", strings.TrimPrefix(shownMoment(s.LastTick)+" "+s.LastStatus, "- "))
	row("overlap", s.Overlap)
	row("catch up", s.CatchUp)
	row("jitter", s.Jitter)
	if s.Failures > 0 {
		row("failures", strconv.Itoa(s.Failures)+" in a row")
	}
	row("declared by", s.Owner)
	if b := s.Backfill; b != nil {
		row("backfill", fmt.Sprintf("%s from %s to %s, next %s", plural(b.Ticks, "tick"), shownMoment(&b.From), shownMoment(&b.To), shownMoment(b.Next)))
	}
	t.bare = true
	return t.print(env)
}

func playbookOf(s client.Schedule) string {
	if s.Version > 0 {
		return fmt.Sprintf("%s version %d", s.Path, s.Version)
	}
	return s.Path
}

func pausedText(s client.Schedule) string {
	if s.State != "paused" {
		return ""
	}
	text := shownMoment(s.PausedAt)
	if s.PausedBy != "" {
		text += " by " + s.PausedBy
	}
	if s.PauseReason != "" {
		text += ": " + s.PauseReason
	}
	return text
}

type scheduleNextCommand struct {
	scheduleRef
	Count int `short:"n" help:"How many times." default:"5" placeholder:"N"`
}

// Run prints the next times of a schedule, and what the clocks of its zone show then.
func (c *scheduleNextCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	next, err := cl.ScheduleNext(ctx, c.Schedule, c.Count)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(next.Timezone)
	if err != nil {
		return fmt.Errorf("read the time zone of the schedule: %w", err)
	}
	t := newTable("UTC", "LOCAL", "IN")
	t.empty = "it does not run any more"
	for _, at := range next.Times {
		t.add(at.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339), at.In(zone).Format("2006-01-02 15:04:05 MST"), time.Until(at).Round(time.Second).String())
	}
	return c.list(env, next, t)
}

type scheduleRunsCommand struct {
	scheduleRef
	Limit int `short:"n" help:"At most so many." default:"20" placeholder:"N"`
}

// Run prints what became of ticks.
func (c *scheduleRunsCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	runs, err := cl.ScheduleRuns(ctx, c.Schedule, time.Time{}, c.Limit)
	if err != nil {
		return err
	}
	t := newTable("TICK", "KIND", "STATE", "EXECUTION", "STARTED", "NOTE")
	t.empty = "no runs yet"
	for _, r := range runs {
		execution := "-"
		if r.ExecutionID != 0 {
			execution = event.ID(r.ExecutionID).String()
		}
		t.add(execution, r.Tick.UTC().Format(time.RFC3339), r.Kind, r.State, execution, shownMoment(r.StartedAt), oneLine(r.Note, 80))
	}
	return c.list(env, runs, t)
}

type schedulePauseCommand struct {
	scheduleRef
	Reason string `short:"r" help:"Why; shown with the schedule." placeholder:"TEXT"`
}

// Run pauses a schedule.
func (c *schedulePauseCommand) Run(ctx context.Context, env *Env) error {
	return c.change(env, func(cl *client.Client) (client.Schedule, error) { return cl.PauseSchedule(ctx, c.Schedule, c.Reason) })
}

type scheduleResumeCommand struct{ scheduleRef }

// Run has a schedule fire again.
func (c *scheduleResumeCommand) Run(ctx context.Context, env *Env) error {
	return c.change(env, func(cl *client.Client) (client.Schedule, error) { return cl.ResumeSchedule(ctx, c.Schedule) })
}

type scheduleRunCommand struct{ scheduleRef }

// Run starts a run beside the ticks.
func (c *scheduleRunCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	run, err := cl.RunSchedule(ctx, c.Schedule)
	if err != nil {
		return err
	}
	id := event.ID(run.ExecutionID).String()
	return c.object(env, run, id, func() error {
		if run.ExecutionID == 0 {
			fmt.Fprintf(env.Stdout, "the run is %s; noetl schedule runs %s shows its execution\n", run.State, c.Schedule)
			return nil
		}
		fmt.Fprintf(env.Stdout, "execution %s %s\n", id, run.State)
		return nil
	})
}

type scheduleBackfillCommand struct {
	scheduleRef
	From        string `required:"" help:"Begin of the range." placeholder:"TIME"`
	To          string `help:"End of the range, itself not in it; now unless given." placeholder:"TIME"`
	Concurrency int    `help:"How many runs at once." default:"1" placeholder:"N"`
}

// Run has a range of ticks run afterwards.
func (c *scheduleBackfillCommand) Run(ctx context.Context, env *Env) error {
	return c.change(env, func(cl *client.Client) (client.Schedule, error) {
		return cl.BackfillSchedule(ctx, c.Schedule, client.BackfillRequest{From: c.From, To: c.To, Concurrency: c.Concurrency})
	})
}

type scheduleDeleteCommand struct {
	serverFlags
	Schedule string `arg:"" help:"Name or id of the schedule."`
	outputFlags
}

// Run removes a schedule.
func (c *scheduleDeleteCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	if err := cl.DeleteSchedule(ctx, c.Schedule); err != nil {
		return err
	}
	return c.done(env, "deleted", c.Schedule, fmt.Sprintf("schedule %s removed", c.Schedule))
}
