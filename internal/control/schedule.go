package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/store"
)

// Declarer keeps the schedules that playbooks declare.
type Declarer interface {
	// Declare makes the schedules of the playbook at a path what it declares.
	Declare(ctx context.Context, path string, specs []event.ScheduleSpec) error
}

// SetSchedules tells the plane who keeps schedules. It must be called before
// the first registration.
func (p *Plane) SetSchedules(d Declarer) { p.schedules = d }

// declare has the schedules of a path follow the version of its playbook that
// is the highest by now: whoever registers or removes last is right. Without
// one there are none.
func (p *Plane) declare(ctx context.Context, path string) error {
	if p.schedules == nil {
		return nil
	}
	entry, err := p.store.EntryByPath(ctx, path, 0)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return notDeclared(path, err)
	}
	var specs []event.ScheduleSpec
	if err == nil && (entry.Kind == "playbook" || entry.Kind == "agent") {
		specs = declared(entry)
	}
	if err := p.schedules.Declare(ctx, path, specs); err != nil {
		return notDeclared(path, err)
	}
	return nil
}

func notDeclared(path string, err error) error {
	out := &event.Error{
		Code: event.Unavailable, Reason: "schedules_not_applied", Err: err,
		Message: fmt.Sprintf("the catalog has the change of %s, but its schedules do not follow it yet: %v", path, err), Remedy: "register the playbook again",
	}
	if code := event.CodeOf(err); code == event.Conflict || code == event.Invalid {
		out.Code = code
	}
	return out
}

// declared are the schedules a playbook asks for. A schedule is called like the
// path, and one that has a name of its own path:name.
func declared(e store.Entry) []event.ScheduleSpec {
	pb, _ := playbook.Parse(e.Path, []byte(e.Content)) // it was checked when it was registered
	if pb == nil {
		return nil
	}
	specs := pb.Metadata.Schedules
	for i := range specs {
		s := &specs[i]
		s.Path = e.Path
		if s.Name == "" {
			s.Name = e.Path
		} else {
			s.Name = e.Path + ":" + s.Name
		}
	}
	return specs
}
