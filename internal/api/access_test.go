package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/source/schedule"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// desk is an Access made of maps: the name of a caller is its token.
type desk struct {
	off bool

	mu       sync.Mutex // guards what follows
	callers  map[string]*auth.Principal
	sessions map[string]auth.Session
	made     []auth.Token
	actions  []auth.Action
	limited  bool
}

func grants(list ...string) []auth.Grant {
	var out []auth.Grant
	for _, g := range list {
		role, prefix, _ := strings.Cut(g, " ")
		out = append(out, auth.Grant{Role: auth.Role(role), Prefix: prefix})
	}
	return out
}

func newDesk() *desk {
	d := &desk{callers: map[string]*auth.Principal{}, sessions: map[string]auth.Session{}}
	for name, list := range map[string][]string{
		"viewer": {"viewer"}, "operator": {"operator"}, "worker": {"worker"}, "admin": {"admin"},
		"narrowed": {"operator team/a", "worker team/a", "admin team/a"},
		"reader":   {"viewer team/a", "operator team/b"},
	} {
		d.callers[name] = &auth.Principal{ID: "token:" + name, Name: name, By: auth.ByToken, Grants: grants(list...)}
		d.sessions["session-"+name] = auth.Session{ID: name, Principal: *d.callers[name], Expires: time.Now().Add(time.Hour)}
	}
	return d
}

var wrong = &event.Error{Code: event.Unauthorized, Message: "no such token in row 7"}

func (d *desk) Required() bool { return !d.off }

func (d *desk) Identify(_ context.Context, e auth.Evidence) (*auth.Principal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.sessions[e.Session]; ok {
		return &s.Principal, nil
	}
	switch p := d.callers[e.Bearer]; {
	case p != nil:
		return p, nil
	case d.limited:
		return nil, &event.Error{Code: event.Limit, Reason: "too_many_failures", Message: "too many failures"}
	case e.Bearer == "" && e.Session == "":
		return nil, auth.ErrNoEvidence
	}
	return nil, wrong
}

func (d *desk) CreateToken(_ context.Context, r auth.TokenRequest) (auth.Token, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := auth.Token{ID: fmt.Sprint(len(d.made) + 1), Name: r.Name, Grants: r.Grants, Expires: r.Expires, CreatedBy: r.By.ID}
	d.made = append(d.made, t)
	return t, "noetl_pat_" + t.ID + "_secret", nil
}

func (d *desk) Tokens(context.Context) ([]auth.Token, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.made), nil
}

func (d *desk) RevokeToken(_ context.Context, id string) (auth.Token, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.made {
		if d.made[i].ID == id {
			d.made[i].RevokedAt = time.Now()
			return d.made[i], nil
		}
	}
	return auth.Token{}, event.Errorf(event.NotFound, "no token")
}

func (d *desk) Login(_ context.Context, r auth.LoginRequest) (auth.Session, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.sessions["session-"+r.Token]; ok {
		return s, "session-" + r.Token, nil
	}
	return auth.Session{}, "", wrong
}

func (d *desk) Session(_ context.Context, secret string) (auth.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.sessions[secret]; ok {
		return s, nil
	}
	return auth.Session{}, wrong
}

func (d *desk) Logout(_ context.Context, secret string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, secret)
	return nil
}

func (d *desk) BeginLogin(_ context.Context, returnTo string) (string, string, error) {
	return "https://issuer.example/authorize?to=" + returnTo, "state-1", nil
}

func (d *desk) FinishLogin(_ context.Context, state, code string, _ auth.LoginRequest) (auth.Session, string, string, error) {
	if state != "state-1" || code != "code-1" {
		return auth.Session{}, "", "", wrong
	}
	return d.sessions["session-viewer"], "session-viewer", "//evil.example/x", nil
}

func (d *desk) Record(_ context.Context, a auth.Action) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.ID = event.ID(len(d.actions) + 1)
	d.actions = append(d.actions, a)
	return nil
}

func (d *desk) Actions(_ context.Context, f auth.ActionFilter) ([]auth.Action, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []auth.Action
	for _, a := range slices.Backward(d.actions) {
		if f.Type == "" || a.Type == f.Type {
			out = append(out, a)
		}
	}
	return out, nil
}

// last is the newest action.
func (d *desk) last() auth.Action {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.actions) == 0 {
		return auth.Action{}
	}
	return d.actions[len(d.actions)-1]
}

// guarded is a server whose callers have to say who they are, with a playbook
// and a running execution of two teams and of the system.
type guarded struct {
	t     *testing.T
	srv   *httptest.Server
	plane *control.Plane
	desk  *desk

	catalog, execution, command map[string]event.ID // by path
}

// noStarts keeps schedules from starting anything.
type noStarts struct{}

func (noStarts) Start(context.Context, schedule.Start) (event.ID, bool, error) {
	return 0, false, event.Errorf(event.Unavailable, "not here")
}

func (noStarts) Status(context.Context, event.ID) (string, time.Time, error) {
	return event.StatusCompleted, time.Time{}, nil
}

func (noStarts) Cancel(context.Context, event.ID, string) error { return nil }

// scheduleOf names the schedule of a playbook.
func scheduleOf(path string) string { return "hourly-" + strings.ReplaceAll(path, "/", "-") }

const internalSecret = "the internal token"

func playbookAt(path string) string {
	return strings.Replace(twoSteps, "path: demo/two", "path: "+path, 1)
}

func newGuarded(t *testing.T, change func(*api.Options)) *guarded {
	t.Helper()
	g := &guarded{t: t, desk: newDesk(), catalog: map[string]event.ID{}, execution: map[string]event.ID{}, command: map[string]event.ID{}}
	o := api.Options{Access: g.desk, InternalToken: internalSecret, Keychain: emptyKeychain{}}
	if change != nil {
		change(&o)
	}
	db := memstore.New()
	schedules := schedule.New(schedule.Options{Store: db, Executions: noStarts{}, IDs: snowflake.New(2, time.Now).Next})
	o.Schedules = schedules
	g.srv, g.plane = serve(t, control.Options{
		Store: db, Bus: membus.New(membus.Options{}), IDs: snowflake.New(1, time.Now).Next,
	}, o)
	for _, path := range []string{"team/a/etl", "team/b/etl", "team/ab", "system/clean"} {
		reg, err := g.plane.Register(t.Context(), control.RegisterRequest{Content: playbookAt(path)})
		if err != nil {
			t.Fatal(err)
		}
		g.catalog[path] = reg.Entry.CatalogID
		if _, err := schedules.Create(t.Context(), event.ScheduleSpec{Name: scheduleOf(path), Path: path, Every: "1h"}); err != nil {
			t.Fatal(err)
		}
		x, err := g.plane.Execute(t.Context(), control.ExecuteRequest{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		g.execution[path] = x.ExecutionID
		events, err := g.plane.Events(t.Context(), x.ExecutionID, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == event.CommandIssued {
				g.command[path] = e.EventID
			}
		}
	}
	return g
}

// as asks as a caller; "" shows nothing. The body of the answer is read only when
// it ends by itself.
func (g *guarded) as(caller, method, path, body string, headers ...string) answer {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, g.srv.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if caller == "internal" {
		caller = internalSecret
	}
	if caller != "" {
		req.Header.Set("Authorization", "Bearer "+caller)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: g.srv.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		a.body = readAll(g.t, resp.Body)
	}
	return a
}
