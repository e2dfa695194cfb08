package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Scope is how a route concerns the paths of playbooks. It decides what a
// caller may do whose role reaches only some of them.
type Scope string

// The scopes. A route without one is closed to narrowed callers, and a test
// complains about it.
const (
	// Everywhere needs a role that is not narrowed.
	Everywhere Scope = "everywhere"
	// Pathless concerns no playbook: a role anywhere will do.
	Pathless Scope = "pathless"
	// ByExecution is decided by the path of the execution in the URL.
	ByExecution Scope = "execution"
	// Permitted is decided by the handler, which calls permit for each path.
	Permitted Scope = "permitted"
	// Filtered shows each caller what it may see.
	Filtered Scope = "filtered"
)

// What becomes of a request that changes something.
const (
	readsOnly  = "reads"  // nothing: it only reads
	inLog      = "log"    // it is recorded in the log of the execution
	ofWorkers  = "worker" // workers report what they do by events
	selfNoting = "self"   // the handler notes it
)

// within says how a route concerns playbook paths.
func (rt route) within(s Scope) route { rt.Scope = s; return rt }

// noted says what is written down about a request: the type of an action, or
// one of the words above.
func (rt route) noted(action string) route { rt.Noted = action; return rt }

// systemPrefix begins the paths of playbooks that run the system itself. Only
// admins register and execute them.
const systemPrefix = "system"

func ofSystem(path string) bool {
	return path == systemPrefix || strings.HasPrefix(path, systemPrefix+"/")
}

// authRole is what a principal needs for a route.
func (r Role) authRole() auth.Role {
	switch r {
	case Viewer, Operator, Worker, Admin:
		return auth.Role(r)
	}
	return auth.Admin
}

// permit refuses what the caller may not do with a path. Whether the path exists
// stays unknown to who may not even see it.
func (s *Server) permit(ctx context.Context, path string) error {
	p := passageOf(ctx)
	p.permitted = true
	path = strings.Trim(path, "/ ")
	if p.who.MayAt(p.need.authRole(), path) {
		return nil
	}
	return p.forbidden("this needs the role " + string(p.need) + " for " + quoted(path))
}

// permitChange is permit for registering and executing.
func (s *Server) permitChange(ctx context.Context, path string) error {
	if err := s.permit(ctx, path); err != nil {
		return err
	}
	p := passageOf(ctx)
	if path = strings.Trim(path, "/ "); ofSystem(path) && !p.who.MayAt(auth.Admin, path) {
		return p.forbidden("playbooks below system/ need the role admin")
	}
	return nil
}

func quoted(path string) string {
	if path == "" {
		return "everything"
	}
	return `"` + path + `"`
}

// permitExecution refuses what the caller may not do with an execution. One it
// may not see looks as if it were not there.
func (s *Server) permitExecution(ctx context.Context, id event.ID) error {
	p := passageOf(ctx)
	p.permitted = true
	role := p.need.authRole()
	if p.who.May(role) {
		return nil
	}
	x, err := s.opt.Plane.Execution(ctx, id)
	switch {
	case err != nil && event.CodeOf(err) != event.NotFound:
		return err
	case err != nil: // what was removed looks like what never was
	case p.who.MayAt(role, x.Path):
		return nil
	case p.who.MayAt(auth.Viewer, x.Path):
		return p.forbidden("this needs the role " + string(p.need) + " for " + quoted(x.Path))
	}
	p.denied = true
	return event.Errorf(event.NotFound, "Execution not found: %d", id)
}

// permitCommand refuses what the caller may not do with a command.
func (s *Server) permitCommand(ctx context.Context, execution, id event.ID) error {
	p := passageOf(ctx)
	p.permitted = true
	if p.who.May(p.need.authRole()) {
		return nil
	}
	c, err := s.opt.Plane.Command(ctx, execution, id)
	if err != nil {
		return noCommand(err, id)
	}
	if err := s.permitExecution(ctx, c.ExecutionID); err != nil {
		return noCommand(renamed(err, "not found"), id)
	}
	return nil
}

// permitEntry refuses what the caller may not do with a catalog entry; change
// tells whether it is to be executed or changed.
func (s *Server) permitEntry(ctx context.Context, ref control.EntryRef, change bool) error {
	p := passageOf(ctx)
	p.permitted = true
	if p.who.May(auth.Admin) {
		return nil
	}
	path := ref.Path
	if ref.CatalogID != 0 {
		if !change && p.who.May(p.need.authRole()) {
			return nil
		}
		e, err := s.opt.Plane.Entry(ctx, control.EntryRef{CatalogID: ref.CatalogID})
		if err != nil {
			return err
		}
		if path = e.Path; !p.who.MayAt(auth.Viewer, path) {
			p.denied = true
			return event.Errorf(event.NotFound, "Catalog entry not found: %d", ref.CatalogID)
		}
	}
	if change {
		return s.permitChange(ctx, path)
	}
	return s.permit(ctx, path)
}

// reach is where a caller's role holds: everywhere, or below some prefixes.
type reach struct {
	everywhere bool
	prefixes   []string
}

func (s *Server) reach(ctx context.Context) reach {
	p := passageOf(ctx)
	p.permitted = true
	role := p.need.authRole()
	if p.who.May(role) {
		return reach{everywhere: true}
	}
	var out reach
	for _, g := range p.who.Grants {
		if g.Role.Includes(role) {
			out.prefixes = append(out.prefixes, strings.TrimSuffix(g.Prefix, "/"))
		}
	}
	slices.Sort(out.prefixes)
	out.prefixes = slices.Compact(out.prefixes)
	// What lies below another prefix adds nothing.
	out.prefixes = slices.DeleteFunc(slices.Clone(out.prefixes), func(one string) bool {
		return slices.ContainsFunc(out.prefixes, func(other string) bool { return strings.HasPrefix(one, other+"/") })
	})
	return out
}

func (re reach) covers(path string) bool {
	return re.everywhere || slices.ContainsFunc(re.prefixes, func(p string) bool {
		return auth.Grant{Prefix: p}.Covers(path)
	})
}

// keep leaves out the entries outside of the reach.
func (re reach) keep(list []store.Entry) []store.Entry {
	if re.everywhere {
		return list
	}
	return slices.DeleteFunc(list, func(e store.Entry) bool { return !re.covers(e.Path) })
}

// listPage is how many rows are read at a time to fill a narrowed list, and
// listDepth how far such a list goes by offset.
const (
	listPage  = 100
	listDepth = 10_000
)

// visible lists the executions a caller may see. For a narrowed one the lists
// below its prefixes are merged, newest first.
func (s *Server) visible(ctx context.Context, f store.ExecutionFilter) ([]store.Execution, error) {
	re := s.reach(ctx)
	if re.everywhere {
		return s.opt.Plane.Executions(ctx, f)
	}
	if f.Offset+f.Limit > listDepth {
		return nil, &event.Error{
			Code: event.Invalid, Message: "this list goes no further by offset", Remedy: "go on with before=<the last execution id>",
		}
	}
	want := f.Offset + f.Limit
	all := []store.Execution{}
	for _, prefix := range re.prefixes {
		rows, err := s.below(ctx, f, prefix, want)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	slices.SortFunc(all, func(a, b store.Execution) int { return -compareIDs(a.ExecutionID, b.ExecutionID) })
	all = all[min(f.Offset, len(all)):]
	return all[:min(f.Limit, len(all))], nil
}

func compareIDs(a, b event.ID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// below lists at most want executions of a prefix that f allows. The store
// compares texts, so that rows beside the prefix have to be left out here.
func (s *Server) below(ctx context.Context, f store.ExecutionFilter, prefix string, want int) ([]store.Execution, error) {
	switch {
	case f.PathPrefix == "" || strings.HasPrefix(prefix, f.PathPrefix):
		f.PathPrefix = prefix
	case !strings.HasPrefix(f.PathPrefix, prefix):
		return nil, nil
	}
	grant := auth.Grant{Prefix: prefix}
	f.Offset, f.Limit = 0, listPage
	var found []store.Execution
	for len(found) < want {
		rows, err := s.opt.Plane.Executions(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, x := range rows {
			if grant.Covers(x.Path) {
				found = append(found, x)
			}
		}
		if len(rows) < f.Limit {
			break
		}
		f.Before = rows[len(rows)-1].ExecutionID
	}
	return found[:min(want, len(found))], nil
}

// permitByURL finds the execution a route is about in its URL.
func (s *Server) permitByURL(r *http.Request) error {
	name := "id"
	if r.PathValue(name) == "" {
		name = "execution_id"
	}
	id, err := pathID(r, name)
	if err != nil {
		return err
	}
	return s.permitExecution(r.Context(), id)
}
