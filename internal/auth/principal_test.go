package auth_test

import (
	"testing"

	"github.com/noetl/noetl-go/internal/auth"
)

func TestRolesIncludeOnlyWhatTheyShould(t *testing.T) {
	t.Parallel()
	want := map[auth.Role][]auth.Role{
		auth.Viewer:   {auth.Viewer},
		auth.Worker:   {auth.Viewer, auth.Worker},
		auth.Operator: {auth.Viewer, auth.Operator},
		auth.Admin:    {auth.Viewer, auth.Worker, auth.Operator, auth.Admin},
		"":            {},
		"root":        {},
	}
	for role, may := range want {
		for _, need := range auth.Roles() {
			wanted := false
			for _, m := range may {
				wanted = wanted || m == need
			}
			if got := role.Includes(need); got != wanted {
				t.Errorf("%q includes %q: %v, want %v", role, need, got, wanted)
			}
		}
	}
}

func TestAGrantCoversWholeNamesOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prefix, path string
		want         bool
	}{
		{"", "anything", true},
		{"team/a", "team/a", true},
		{"team/a", "team/a/etl", true},
		{"team/a/", "team/a/etl", true},
		{"team/a", "team/ab", false},
		{"team/a", "team", false},
		{"team/a", "", false},
		{"team/a", "Team/a", false},
	} {
		if got := (auth.Grant{Role: auth.Viewer, Prefix: c.prefix}).Covers(c.path); got != c.want {
			t.Errorf("prefix %q covers %q: %v, want %v", c.prefix, c.path, got, c.want)
		}
	}
}
