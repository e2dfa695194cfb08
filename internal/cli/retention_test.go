package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAPolicyIsReadFromAFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want, err string }{
		"YAML": {
			text: "default: {all: 30d, failed: 90d}\nrules:\n  - {path: /team/a/, completed: 7d, keep_last: 10}\n",
			want: "completed=30d,failed=90d,cancelled=30d;team/a:completed=7d,keep=10",
		},
		"JSON":                    {text: `{"rules": [{"path": "a", "all": "forever"}]}`, want: "a:completed=forever,failed=forever,cancelled=forever"},
		"an empty file":           {err: "is empty"},
		"nothing said":            {text: "rules: []\n", err: "says nothing"},
		"an unknown word":         {text: "default: {al: 30d}\n", err: "al"},
		"a bad age":               {text: "default: {all: 30}\n", err: "is no age"},
		"a rule without a path":   {text: "default: {all: 3d}\nrules: [{path: a, all: 1d}, {all: 4d}]\n", err: "rule 2 names no path"},
		"a path of slashes":       {text: "rules: [{path: /, all: 4d}]\n", err: "rule 1 names no path"},
		"a default with a path":   {text: "default: {path: a, all: 3d}\n", err: "write path a as a rule"},
		"two rules for a path":    {text: "rules: [{path: a, all: 1d}, {path: a/, all: 4d}]\n", err: "two rules for a"},
		"a rule that says naught": {text: "rules: [{path: a}]\n", err: "the rule for a says nothing"},
		"a file that is too long": {text: "default: {all: 30d}\n" + strings.Repeat("# more\n", 1<<18), err: "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "retention.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			f := retentionFlags{RetentionFile: file, RetentionInterval: time.Minute, RetentionMax: 5}
			o, err := f.options()
			switch {
			case c.err == "" && (err != nil || o.Policy.String() != c.want || o.PerRun != 5 || o.Every != time.Minute):
				t.Errorf("the policy is %q, %v, want %q", o.Policy, err, c.want)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "retention")):
				t.Errorf("the file is refused with %v, want %q", err, c.err)
			}
		})
	}
}

func TestSettingsOfRetentionThatAreWrongStopTheStart(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]retentionFlags{
		"give one":             {Retention: "3d", RetentionFile: "f", RetentionInterval: time.Minute, RetentionMax: 1},
		"too short":            {RetentionInterval: time.Millisecond, RetentionMax: 1},
		"want a number":        {RetentionInterval: time.Minute},
		"no such file":         {RetentionFile: filepath.Join(t.TempDir(), "none"), RetentionInterval: time.Minute, RetentionMax: 1},
		"no end of an":         {Retention: "running=3d", RetentionInterval: time.Minute, RetentionMax: 1},
		"the rule says this t": {Retention: "30d,failed=3d,failed=4d", RetentionInterval: time.Minute, RetentionMax: 1},
	} {
		if o, err := f.options(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %+v, %v, want %q", f, o, err, want)
		}
	}
	if o, err := (&retentionFlags{RetentionInterval: time.Minute, RetentionMax: 1}).options(); err != nil || len(o.Policy) != 0 {
		t.Errorf("without a policy: %+v, %v", o, err)
	}
}
