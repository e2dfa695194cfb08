package auth_test

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
)

func TestGrantsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"operator": "operator", " viewer , operator:team/a ": "viewer,operator:team/a", "admin:/team/a/": "admin:team/a", "worker,worker": "worker",
		"viewer:a b": "!is not a path", "": "!no role", "root": "!no role \"root\"", "operator:": "!no path after the colon", "operator:/": "!no path after the colon",
		"viewer,": "!no role", "viewer:a//b": "!is not a path", "viewer:../a": "!is not a path", "viewer:team/*": "!is not a path", "Operator": "!no role",
		"viewer:" + strings.Repeat("x", 600): "!is not a path",
	} {
		got, err := auth.ParseGrants(text)
		complaint, wrong := strings.CutPrefix(want, "!")
		switch {
		case wrong && (err == nil || event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), complaint)):
			t.Errorf("%q = %v, %v; want a complaint that it has %s", text, got, err, complaint)
		case !wrong && (err != nil || auth.FormatGrants(got) != want):
			t.Errorf("%q = %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestRulesSayWhatIsWrongWithThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "no rule", " ; ": "no rule", "groups=a": "no ->", "->admin": "no =", "groups->admin": "no =", "=a->admin": "blank name", "groups=->admin": "blank name",
		"groups=a->": "gives nothing", "groups=a->king": "no role \"king\"", "a=b->viewer; c": "no ->",
	} {
		if _, err := auth.ParseRules(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q = %v, want %q", text, err, want)
		}
	}
	rules, err := auth.ParseRules("a=b->viewer; CN=x->worker;")
	if err != nil || len(rules) != 2 {
		t.Fatal(rules, err)
	}
	if err := auth.CheckCertificateRules(rules); err == nil || !strings.Contains(err.Error(), `no "a"`) {
		t.Errorf("a rule about nothing of a certificate = %v", err)
	}
}
