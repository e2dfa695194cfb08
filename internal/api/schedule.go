package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/source/schedule"
)

// Schedules keeps what is started by itself. *schedule.Service is one.
type Schedules interface {
	List(ctx context.Context, f schedule.Filter) ([]event.ScheduleView, error)
	Get(ctx context.Context, ref string) (event.ScheduleView, error)
	Create(ctx context.Context, spec event.ScheduleSpec) (event.ScheduleView, error)
	Update(ctx context.Context, ref string, spec event.ScheduleSpec) (event.ScheduleView, error)
	Delete(ctx context.Context, ref string) (event.ScheduleView, error)
	Pause(ctx context.Context, ref, reason, by string) (event.ScheduleView, error)
	Resume(ctx context.Context, ref string) (event.ScheduleView, error)
	RunNow(ctx context.Context, ref string) (event.ScheduleRunView, error)
	Backfill(ctx context.Context, ref string, b event.ScheduleBackfill) (event.ScheduleView, error)
	Runs(ctx context.Context, ref string, before time.Time, limit int) ([]event.ScheduleRunView, error)
	Next(ctx context.Context, ref string, count int) ([]time.Time, error)
}

func (s *Server) scheduleRoutes() []route {
	const (
		spec = `{path, cron | every, name?, version?, timezone?, overlap?, queue_limit?, catch_up?, catch_up_limit?, catch_up_window?, jitter?, start?, end?, payload?, pool?, max_failures?}`
		view = `schedule`
	)
	return []route{
		entry(http.MethodGet, "/api/schedules", Viewer, s.listSchedules, "lists schedules by name", "?path=&state=active|paused|ended", `{items: [schedule], count}`).within(Filtered),
		entry(http.MethodPost, "/api/schedules", Operator, s.createSchedule, "has a playbook started by itself, by cron or at an interval", spec, view).within(Permitted).noted("schedule.created"),
		entry(http.MethodGet, "/api/schedules/{ref}", Viewer, s.schedule, "shows a schedule, by id or name", "", view).within(Permitted),
		entry(http.MethodPut, "/api/schedules/{ref}", Operator, s.updateSchedule, "replaces what a schedule says; its next tick is found anew when its times changed", spec, view).within(Permitted).noted("schedule.changed"),
		entry(http.MethodDelete, "/api/schedules/{ref}", Operator, s.deleteSchedule, "removes a schedule; executions it started go on", "", `{status, schedule_id, name}`).within(Permitted).noted("schedule.deleted"),
		entry(http.MethodPost, "/api/schedules/{ref}/pause", Operator, s.pauseSchedule, "stops a schedule from firing; what it started goes on", `{reason?}`, view).within(Permitted).noted("schedule.paused"),
		entry(http.MethodPost, "/api/schedules/{ref}/resume", Operator, s.resumeSchedule, "has a schedule fire again, from its next tick on", "", view).within(Permitted).noted("schedule.resumed"),
		entry(http.MethodPost, "/api/schedules/{ref}/run", Operator, s.runSchedule, "starts a run now, beside the ticks", "", `run`).within(Permitted).noted("schedule.run"),
		entry(http.MethodPost, "/api/schedules/{ref}/backfill", Operator, s.backfillSchedule, "runs the ticks of a range that were not run, each once", `{from, to?, concurrency?}`, view).within(Permitted).noted("schedule.backfilled"),
		entry(http.MethodGet, "/api/schedules/{ref}/runs", Viewer, s.scheduleRuns, "tells what became of ticks, the latest first", "?before=&limit=", `{schedule_id, name, items: [run], count}`).within(Permitted),
		entry(http.MethodGet, "/api/schedules/{ref}/next", Viewer, s.scheduleNext, "tells when a schedule runs next", "?count=", `{schedule_id, name, timezone, state, times: [time]}`).within(Permitted),
	}
}

func (s *Server) scheduler() (Schedules, error) {
	if s.opt.Schedules == nil {
		return nil, &event.Error{Code: event.Unavailable, Message: "this server keeps no schedules", Reason: "no_schedules"}
	}
	return s.opt.Schedules, nil
}

// found returns the schedule a request names, if its caller may do this with
// it. One it may not see looks as if it were not there.
func (s *Server) found(r *http.Request) (Schedules, event.ScheduleView, error) {
	all, err := s.scheduler()
	if err != nil {
		return nil, event.ScheduleView{}, err
	}
	p := passageOf(r.Context())
	p.permitted = true
	view, err := all.Get(r.Context(), r.PathValue("ref"))
	switch {
	case err != nil:
		return nil, view, err
	case !p.who.MayAt(auth.Viewer, view.Path) && !p.who.MayAt(p.need.authRole(), view.Path):
		p.denied = true
		return nil, view, event.Errorf(event.NotFound, "there is no schedule %q", r.PathValue("ref"))
	case p.need == Viewer:
		return all, view, nil
	}
	concerning(r.Context(), view.Name)
	return all, view, s.permitChange(r.Context(), view.Path)
}

type schedulesAnswer struct {
	Items []event.ScheduleView `json:"items"`
	Count int                  `json:"count"`
}

func (s *Server) listSchedules(w http.ResponseWriter, r *http.Request) error {
	all, err := s.scheduler()
	if err != nil {
		return err
	}
	f := schedule.Filter{Path: r.URL.Query().Get("path"), State: r.URL.Query().Get("state")}
	if !slices.Contains([]string{"", "active", "paused", "ended"}, f.State) {
		return event.Errorf(event.Invalid, "state: want active, paused or ended, got %q", f.State)
	}
	views, err := all.List(r.Context(), f)
	if err != nil {
		return err
	}
	p := passageOf(r.Context())
	p.permitted = true
	views = slices.DeleteFunc(views, func(v event.ScheduleView) bool { return !p.who.MayAt(auth.Viewer, v.Path) })
	return respond(w, schedulesAnswer{views, len(views)})
}

// knownPlaybook refuses a schedule of a playbook that is not in the catalog: it
// would fail at its ticks, when nobody looks.
func (s *Server) knownPlaybook(ctx context.Context, spec *event.ScheduleSpec) error {
	if err := schedule.Check(*spec); err != nil {
		return err
	}
	_, err := s.opt.Plane.Entry(ctx, control.EntryRef{Path: spec.Path, Version: spec.Version})
	if err == nil || event.CodeOf(err) != event.NotFound {
		return err
	}
	version := ""
	if spec.Version > 0 {
		version = fmt.Sprintf(" version %d", spec.Version)
	}
	return &event.Error{
		Code: event.NotFound, Message: fmt.Sprintf("there is no playbook %q%s that could be started", spec.Path, version),
		Remedy: "register it first; noetl catalog list Playbook shows what there is",
	}
}

// permitSchedule refuses a schedule of a playbook the caller may not start, and
// the names that the schedules of other playbooks have: a path, or a path with a
// name of its own behind a colon.
func (s *Server) permitSchedule(ctx context.Context, spec *event.ScheduleSpec) error {
	spec.Path = strings.Trim(spec.Path, "/ ")
	if err := s.permitChange(ctx, spec.Path); err != nil {
		return err
	}
	path, _, _ := strings.Cut(spec.Name, ":")
	if path = strings.TrimSpace(path); !strings.Contains(path, "/") {
		return nil
	}
	return s.permitChange(ctx, path)
}

func (s *Server) createSchedule(w http.ResponseWriter, r *http.Request) error {
	all, err := s.scheduler()
	if err != nil {
		return err
	}
	var spec event.ScheduleSpec
	if err := decode(r, &spec, false); err != nil {
		return err
	}
	if err := s.permitSchedule(r.Context(), &spec); err != nil {
		return err
	}
	if err := s.knownPlaybook(r.Context(), &spec); err != nil {
		return err
	}
	view, err := all.Create(schedule.By(r.Context(), s.starter(r.Context())), spec)
	if err != nil {
		return err
	}
	concerning(r.Context(), view.Name)
	return respond(w, view)
}

func (s *Server) schedule(w http.ResponseWriter, r *http.Request) error {
	_, view, err := s.found(r)
	if err != nil {
		return err
	}
	return respond(w, view)
}

func (s *Server) updateSchedule(w http.ResponseWriter, r *http.Request) error {
	all, view, err := s.found(r)
	if err != nil {
		return err
	}
	var body scheduleChange
	if err := decode(r, &body, false); err != nil {
		return err
	}
	spec := event.ScheduleSpec(body)
	if spec.Path == "" {
		spec.Path = view.Path
	}
	if err := s.permitSchedule(r.Context(), &spec); err != nil {
		return err
	}
	if err := s.knownPlaybook(r.Context(), &spec); err != nil {
		return err
	}
	if view, err = all.Update(schedule.By(r.Context(), s.starter(r.Context())), event.ID(view.ID).String(), spec); err != nil {
		return err
	}
	return respond(w, view)
}

type scheduleDeleted struct {
	Status string         `json:"status"`
	ID     event.StringID `json:"schedule_id"`
	Name   string         `json:"name"`
}

func (s *Server) deleteSchedule(w http.ResponseWriter, r *http.Request) error {
	all, view, err := s.found(r)
	if err != nil {
		return err
	}
	if view, err = all.Delete(r.Context(), event.ID(view.ID).String()); err != nil {
		return err
	}
	return respond(w, scheduleDeleted{"deleted", view.ID, view.Name})
}

type pauseBody struct {
	Reason string `json:"reason"`
}

func (s *Server) pauseSchedule(w http.ResponseWriter, r *http.Request) error {
	all, view, err := s.found(r)
	if err != nil {
		return err
	}
	var body pauseBody
	if err := decode(r, &body, true); err != nil {
		return err
	}
	by := ""
	if a := actor(r.Context()); a != nil {
		by = a.Name
	}
	if view, err = all.Pause(r.Context(), event.ID(view.ID).String(), body.Reason, by); err != nil {
		return err
	}
	return respond(w, view)
}

func (s *Server) resumeSchedule(w http.ResponseWriter, r *http.Request) error {
	all, view, err := s.found(r)
	if err != nil {
		return err
	}
	if view, err = all.Resume(r.Context(), event.ID(view.ID).String()); err != nil {
		return err
	}
	return respond(w, view)
}

func (s *Server) runSchedule(w http.ResponseWriter, r *http.Request) error {
	all, view, err := s.found(r)
	if err != nil {
		return err
	}
	run, err := all.RunNow(r.Context(), event.ID(view.ID).String())
	if err != nil {
		return err
	}
	return respond(w, run)
}

type backfillBody struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Concurrency int    `json:"concurrency"`
}

func (s *Server) backfillSchedule(w http.ResponseWriter, r *http.Request) error {
	all, view, err := s.found(r)
	if err != nil {
		return err
	}
	var body backfillBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	b := event.ScheduleBackfill{Concurrency: body.Concurrency}
	if b.From, err = momentOf("from", body.From, view.Timezone); err != nil {
		return err
	}
	if b.To, err = momentOf("to", body.To, view.Timezone); err != nil {
		return err
	}
	if a := actor(r.Context()); a != nil {
		b.By = a.Name
	}
	if view, err = all.Backfill(r.Context(), event.ID(view.ID).String(), b); err != nil {
		return err
	}
	return respond(w, view)
}

// momentOf reads a time; without an offset it is one of the schedule's zone.
func momentOf(name, text, zone string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := schedule.Moment(text, zone)
	if err != nil {
		return t, event.Errorf(event.Invalid, "%s: %v", name, err)
	}
	return t, nil
}

type scheduleRunsAnswer struct {
	ID    event.StringID          `json:"schedule_id"`
	Name  string                  `json:"name"`
	Items []event.ScheduleRunView `json:"items"`
	Count int                     `json:"count"`
}

func (s *Server) scheduleRuns(w http.ResponseWriter, r *http.Request) error {
	all, view, err := s.found(r)
	if err != nil {
		return err
	}
	q := queryOf(r)
	limit := q.number("limit", 50, 1, 1000)
	if q.err != nil {
		return q.err
	}
	before, err := momentOf("before", q.Get("before"), view.Timezone)
	if err != nil {
		return err
	}
	runs, err := all.Runs(r.Context(), event.ID(view.ID).String(), before, int(limit))
	if err != nil {
		return err
	}
	return respond(w, scheduleRunsAnswer{view.ID, view.Name, runs, len(runs)})
}

type scheduleNextAnswer struct {
	ID       event.StringID `json:"schedule_id"`
	Name     string         `json:"name"`
	Timezone string         `json:"timezone"`
	State    string         `json:"state"`
	Times    []time.Time    `json:"times"`
}

func (s *Server) scheduleNext(w http.ResponseWriter, r *http.Request) error {
	all, view, err := s.found(r)
	if err != nil {
		return err
	}
	q := queryOf(r)
	count := q.number("count", 5, 1, 1000)
	if q.err != nil {
		return q.err
	}
	times, err := all.Next(r.Context(), event.ID(view.ID).String(), int(count))
	if err != nil {
		return err
	}
	return respond(w, scheduleNextAnswer{view.ID, view.Name, view.Timezone, view.State, times})
}
