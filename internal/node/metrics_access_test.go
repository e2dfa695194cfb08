package node_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/source/schedule"
	"github.com/noetl/noetl-go/internal/store/memstore"
	"github.com/noetl/noetl-go/internal/testkit/oidcd"
)

// callers show who they are, or do not.
func callers(t *testing.T, m *meters) {
	issuer := oidcd.Start(t)
	rules, err := auth.ParseRules("role=*->viewer")
	if err != nil {
		t.Fatal(err)
	}
	var r obs.Registry
	m.registry(&r)
	var late atomic.Int64
	var cut atomic.Bool
	clock := func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	s, err := auth.New(auth.Options{
		Mode: auth.ModeOIDC, Store: memstore.New(), IDs: snowflake.New(1, nil).Next, Clock: clock, Metrics: &r, RedirectURL: "http://here" + auth.CallbackPath,
		Issuers: []auth.Issuer{{URL: issuer.URL, Audience: []string{issuer.Audience}, Rules: rules, ClientID: "page"}},
		Transport: transport(func(q *http.Request) (*http.Response, error) {
			if cut.Load() {
				return nil, errors.New("cut off")
			}
			return http.DefaultTransport.RoundTrip(q)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(d time.Duration) { late.Add(int64(d)) }
	show := func(e auth.Evidence) error {
		e.Remote = "192.0.2.1"
		_, err := s.Identify(t.Context(), e)
		return err
	}
	bearer := func(text string) error { return show(auth.Evidence{Bearer: text}) }
	good := issuer.Token(issuer.Claims("viewer", nil))

	cut.Store(true)
	_ = bearer(good)
	cut.Store(false)
	_ = bearer(good) // asked too soon
	pass(time.Minute)
	for range 2 {
		if err := bearer(good); err != nil {
			t.Fatal(err)
		}
	}
	for _, token := range []string{
		"a.b.c", issuer.None("none", issuer.Claims("viewer", nil)), issuer.Token(issuer.Claims("viewer", oidcd.Claims{"iss": "https://else"})),
		issuer.Signed(map[string]any{"kid": "other"}, issuer.Claims("viewer", nil)), good[:len(good)-8] + "AAAAAAAA",
		issuer.Token(issuer.Claims("viewer", oidcd.Claims{"aud": "else"})), issuer.Token(issuer.Claims("viewer", oidcd.Claims{"sub": nil})),
		issuer.Token(issuer.Claims("viewer", oidcd.Claims{"exp": 1})), issuer.Token(issuer.Claims("viewer", oidcd.Claims{"nbf": clock().Add(time.Hour).Unix()})),
	} {
		if bearer(token) == nil {
			t.Error("a token that is not good was taken")
		}
	}
	pass(time.Hour) // what the address did wrong is forgotten
	browser := signIn(t, s, issuer)

	grants, err := auth.ParseGrants("viewer")
	if err != nil {
		t.Fatal(err)
	}
	made := func(ends time.Time) (auth.Token, string) {
		tok, secret, err := s.CreateToken(t.Context(), auth.TokenRequest{Name: "t" + ends.String(), Grants: grants, Expires: ends, By: &auth.Local})
		if err != nil {
			t.Fatal(err)
		}
		return tok, secret
	}
	tok, secret := made(time.Time{})
	_, session, err := s.Login(t.Context(), auth.LoginRequest{Token: secret, Remote: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	_ = bearer(secret[:len(secret)-4] + "0000")
	_ = bearer(strings.Replace(secret, tok.ID, "1", 1))
	if _, err := s.RevokeToken(t.Context(), tok.ID); err != nil {
		t.Fatal(err)
	}
	pass(time.Minute)
	_ = bearer(secret)
	_, short := made(clock().Add(time.Minute))
	pass(48 * time.Hour)
	_ = bearer(short)
	_ = show(auth.Evidence{Session: session})
	_ = show(auth.Evidence{Session: browser})
	_ = show(auth.Evidence{Session: "nobody's"})
	_ = show(auth.Evidence{Certificate: &x509.Certificate{}})
	for range 30 {
		_ = show(auth.Evidence{Session: "nobody's"})
	}
	for range 40 {
		if err := s.Record(t.Context(), auth.Action{Type: "denied", Outcome: "refused", Remote: "192.0.2.1"}); err != nil {
			t.Fatal(err)
		}
	}
	off, err := auth.New(auth.Options{Mode: auth.ModeOff, Store: memstore.New(), IDs: snowflake.New(1, nil).Next, Metrics: &obs.Registry{}})
	if err != nil || off.Required() {
		t.Errorf("authentication that is off is required, %v", err)
	}
}

// signIn has a browser sign in, with the right code and with another.
func signIn(t *testing.T, s *auth.Service, issuer *oidcd.Issuer) (session string) {
	t.Helper()
	issuer.SignIn(issuer.Claims("viewer", oidcd.Claims{"exp": time.Now().Add(24 * time.Hour).Unix()}))
	for _, right := range []bool{true, false} {
		redirect, state, err := s.BeginLogin(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, redirect, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		back, err := resp.Location()
		if err != nil {
			t.Fatal(err)
		}
		code := back.Query().Get("code")
		if !right {
			code = "guess"
		}
		_, secret, _, err := s.FinishLogin(t.Context(), state, code, auth.LoginRequest{Remote: "192.0.2.1"})
		if (err == nil) != right {
			t.Errorf("sign in with the right code %t: %v", right, err)
		}
		if right {
			session = secret
		}
	}
	return session
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// started stands for executions: they run for ever.
type started struct{ refuse atomic.Bool }

func (s *started) Start(context.Context, schedule.Start) (event.ID, bool, error) {
	if s.refuse.Load() {
		return 0, false, event.Errorf(event.NotFound, "there is no such playbook")
	}
	return 1, true, nil
}

func (*started) Status(context.Context, event.ID) (string, time.Time, error) {
	return event.StatusRunning, time.Time{}, nil
}

func (*started) Cancel(context.Context, event.ID, string) error { return nil }

// schedules tick, late and in time.
func schedules(t *testing.T, m *meters) {
	var r obs.Registry
	var x started
	s := schedule.New(schedule.Options{Store: memstore.New(), Executions: &x, IDs: snowflake.New(1, nil).Next, Metrics: obs.NewSchedules(&r)})
	r.OnScrape(func() {
		if err := s.Count(t.Context()); err != nil {
			t.Error(err)
		}
	})
	m.registry(&r)
	create := func(name string, spec event.ScheduleSpec) {
		spec.Name, spec.Path, spec.Every = name, "bed/one", "1m"
		if _, err := s.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	run := func(d time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	create("skips", event.ScheduleSpec{Overlap: "skip", CatchUp: "none"})
	create("queues", event.ScheduleSpec{Overlap: "queue"})
	create("ends", event.ScheduleSpec{End: time.Now().Add(2 * time.Minute).Format(time.RFC3339)})
	run(5 * time.Minute)
	time.Sleep(time.Hour) // nobody is there
	run(5 * time.Minute)
	x.refuse.Store(true)
	create("fails", event.ScheduleSpec{})
	run(5 * time.Minute)
	if _, err := s.Pause(t.Context(), "fails", "enough", "test"); err != nil {
		t.Fatal(err)
	}
}

func init() {
	scenarios["callers who show who they are"] = scenario{[]string{
		"noetl_auth_denials_dropped_total", `noetl_auth_jwt_verify_total{mode="login"}`, `noetl_auth_jwks_total{event="limited"}`, `noetl_auth_failures_total{reason="limited"}`,
	}, callers}
	scenarios["schedules"] = scenario{[]string{
		`noetl_schedule_fired_total{outcome="missed"}`, `noetl_schedule_fired_total{outcome="skipped"}`, `noetl_schedule_fired_total{outcome="queued"}`,
		`noetl_schedule_fired_total{outcome="failed"}`, "noetl_schedule_lag_seconds", `noetl_schedules{state="ended"}`,
	}, virtual(schedules)}
}
