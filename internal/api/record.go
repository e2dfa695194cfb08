package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
)

// How long the record of a request may take, and how often an open stream asks
// whether its caller may still listen.
const (
	noteTime   = 5 * time.Second
	askAgainIn = 30 * time.Second
)

// The outcomes of actions.
const (
	outcomeOK      = "ok"
	outcomeRefused = "refused"
	outcomeError   = "error"
)

// typeDenied is the type of actions that were refused for lack of rights.
const typeDenied = "access.denied"

// note writes down what a request changed, or that it was refused. What changes
// an execution stands in that execution's log and is not noted twice.
func (s *Server) note(rt route, r *http.Request, status int) {
	if s.opt.Access == nil {
		return
	}
	p := passageOf(r.Context())
	a := auth.Action{Type: rt.Noted, Outcome: outcomeOK}
	switch {
	case p.denied || status == http.StatusUnauthorized || status == http.StatusTooManyRequests:
		if !s.required() {
			return
		}
		a.Type, a.Outcome = typeDenied, outcomeRefused
	case a.Type == "" || a.Type == readsOnly || a.Type == inLog || a.Type == ofWorkers || p.noted || safeMethod(r.Method):
		return
	case a.Type == selfNoting || p.who.By == auth.ByInternal && status < http.StatusBadRequest && rt.Role == Worker:
		return
	case status >= http.StatusBadRequest:
		a.Outcome = outcomeError
	}
	s.record(r, rt, a, status)
}

// record completes an action with what is known of its request and keeps it.
func (s *Server) record(r *http.Request, rt route, a auth.Action, status int) {
	p := passageOf(r.Context())
	a.Actor, a.ActorName, a.By = p.who.ID, p.who.Name, p.who.By
	a.At, a.Remote, a.RequestID, a.Status = s.opt.Clock().UTC(), p.remote, p.requestID, status
	a.Method, a.Route = r.Method, rt.Pattern
	if a.Target == "" {
		a.Target = p.targetOf(r)
	}
	if a.Detail == nil && p.detail != nil {
		a.Detail, _ = json.Marshal(p.detail) // what cannot be written is left out
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), noteTime)
	defer cancel()
	if err := s.opt.Access.Record(ctx, a); err != nil {
		s.opt.Logger.Error("an action was not recorded", "type", a.Type, "actor", a.Actor, "target", a.Target, "request_id", a.RequestID, "error", err)
	}
}

const maxTarget = 512

// targetOf is what a request is about: what the handler says, or the variable
// parts of its address.
func (p *passage) targetOf(r *http.Request) string {
	target := p.target
	for _, name := range []string{"id", "execution_id", "catalog_id", "identifier", "path", "name", "step"} {
		if v := r.PathValue(name); v != "" && p.target == "" {
			if target != "" {
				target += "/"
			}
			target += v
		}
	}
	return target[:min(len(target), maxTarget)]
}

// actor is who is said to have changed an execution; nil where nobody had to
// say who they are.
func actor(ctx context.Context) *event.Actor {
	who := passageOf(ctx).who
	if who.By == auth.ByNothing {
		return nil
	}
	return &event.Actor{ID: who.ID, Name: who.Name, By: who.By}
}

// starter is actor for what starts executions: it also says what those may
// start in turn, which is what the caller may.
func (s *Server) starter(ctx context.Context) *event.Actor {
	a := actor(ctx)
	if a == nil {
		return nil
	}
	p := passageOf(ctx)
	if !p.who.May(auth.Operator) {
		for _, g := range p.who.Grants {
			if prefix := strings.TrimSuffix(g.Prefix, "/"); g.Role.Includes(auth.Operator) && !slices.Contains(a.Within, prefix) {
				a.Within = append(a.Within, prefix)
			}
		}
	}
	if !p.who.MayAt(auth.Admin, systemPrefix) {
		a.Without = []string{systemPrefix}
	}
	return a
}

// caller keeps the keys of different callers apart.
func caller(ctx context.Context) string {
	if a := actor(ctx); a != nil {
		return a.ID
	}
	return ""
}

// whileAllowed ends a stream when its caller's evidence ends or is taken back.
func (s *Server) whileAllowed(r *http.Request) (*http.Request, func()) {
	p := passageOf(r.Context())
	if !s.required() || p.who.By == auth.ByInternal || p.need == Anyone || p.need == "" {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	var timer *time.Timer
	armed := make(chan struct{})
	timer = time.AfterFunc(askAgainIn, func() {
		<-armed
		e, _ := s.evidence(r)
		who, err := s.opt.Access.Identify(ctx, e)
		gone := err != nil && event.CodeOf(err) != event.Unavailable || err == nil && who.ID != p.who.ID
		if gone {
			cancel()
			return
		}
		timer.Reset(askAgainIn)
	})
	close(armed)
	return r.WithContext(ctx), func() { timer.Stop(); cancel() }
}
