// Package archtest holds the rules of the repository as tests: which package
// may import which, and the house rules a reviewer would otherwise have to
// repeat. Every failure is a sentence that says what to do. It must not be
// imported by anything.
package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/noetl/noetl-go/"

// may lists for each package (or path.Match pattern) the packages of this
// module that it may import outside its tests. Arrows point downwards only: a
// package that is missing here has no charter yet.
var may = map[string][]string{
	"cmd/noetl": {"*", "*/*", "*/*/*"},
	"client":    {"internal/event"},
	"web":       {},
	"deploy":    {},

	// What a workflow is and does: no I/O.
	"internal/event":    {},
	"internal/jinja":    {},
	"internal/playbook": {"internal/event", "internal/jinja", "internal/schedule", "internal/tool/schema"},
	"internal/schedule": {"internal/event"},
	"internal/scope":    {"internal/jinja"},
	"internal/engine":   {"internal/event", "internal/jinja", "internal/playbook", "internal/scope"},
	"internal/replay":   {"internal/event"},

	// Small things without a home further up.
	"internal/snowflake": {"internal/event"},
	"internal/redact":    {},
	"internal/egress":    {},
	"internal/form":      {},
	"internal/lru":       {},
	"internal/obs":       {},
	"internal/obs/otlp":  {"internal/event", "internal/obs"}, // what speaks the protocol is large: only the program takes it in
	"internal/failpoint": {"internal/event"},

	// Contracts and their drivers. No driver knows another.
	"internal/store":             {"internal/event"},
	"internal/store/groupcommit": {"internal/event"},
	"internal/store/memstore":    {"internal/event", "internal/store", "internal/store/groupcommit"},
	"internal/store/sqlite":      {"internal/event", "internal/failpoint", "internal/store", "internal/store/groupcommit"},
	"internal/store/postgres":    {"internal/event", "internal/failpoint", "internal/store", "internal/store/groupcommit"},
	"internal/store/storetest":   {"internal/event", "internal/store", "internal/store/memstore"}, // the model it compares with
	"internal/bus":               {"internal/event"},
	"internal/bus/membus":        {"internal/event", "internal/bus"},
	"internal/bus/nats":          {"internal/event", "internal/bus"},
	"internal/bus/bustest":       {"internal/event", "internal/bus"},
	"internal/tool":              {"internal/event"},
	"internal/tool/schema":       {},
	"internal/tool/sqltext":      {},
	"internal/tool/wait":         {"internal/event", "internal/form", "internal/tool"},
	"internal/tool/script":       {"internal/tool", "internal/tool/container", "internal/tool/source"},
	"internal/tool/transfer":     {"internal/egress", "internal/tool", "internal/tool/duckdb", "internal/tool/outbound", "internal/tool/postgres"},
	"internal/tool/*":            {"internal/egress", "internal/event", "internal/tool", "internal/tool/outbound", "internal/tool/process", "internal/tool/schema", "internal/tool/source", "internal/tool/sqltext"},

	// The control plane and its edges.
	"internal/control": {
		"internal/bus", "internal/engine", "internal/event", "internal/failpoint", "internal/form", "internal/jinja", "internal/lru", "internal/obs", "internal/playbook",
		"internal/redact", "internal/replay", "internal/result", "internal/scope", "internal/secret", "internal/secret/*", "internal/snowflake", "internal/store",
	},
	"internal/secret":          {"internal/event", "internal/secret/envelope", "internal/store"},
	"internal/secret/envelope": {"internal/event"},
	"internal/secret/sealed":   {"internal/event"},
	"internal/secret/provider": {"internal/egress", "internal/event"},
	"internal/secret/keychain": {"internal/event", "internal/secret", "internal/secret/provider", "internal/store"},
	"internal/auth":            {"internal/event", "internal/lru", "internal/obs", "internal/store"},
	"internal/result":          {"internal/event", "internal/scope", "internal/store"},
	"internal/result/*":        {"internal/event", "internal/result"},
	"internal/source/schedule": {"internal/event", "internal/obs", "internal/schedule", "internal/store"},
	"internal/api": {
		"internal/api/openapi", "internal/auth", "internal/bus", "internal/control", "internal/engine", "internal/event", "internal/form", "internal/jinja", "internal/obs", "internal/playbook",
		"internal/redact", "internal/replay", "internal/result", "internal/secret", "internal/secret/*", "internal/source/schedule", "internal/store", "web",
	},
	"internal/api/openapi": {},
	"internal/api/apitest": {"internal/api", "internal/control", "internal/engine", "internal/event", "internal/store"},

	"internal/doctor": {"client", "internal/bus", "internal/event", "internal/obs", "internal/store"},

	// The worker's side.
	"internal/pipeline": {"internal/event", "internal/jinja", "internal/obs", "internal/playbook", "internal/redact", "internal/scope", "internal/tool"},
	"internal/worker":   {"client", "internal/bus", "internal/event", "internal/failpoint", "internal/obs", "internal/secret", "internal/tool"},

	// Putting a process together, and what a person types.
	"internal/node": {
		"client", "internal/api", "internal/auth", "internal/bus", "internal/bus/*", "internal/control", "internal/event", "internal/failpoint",
		"internal/doctor", "internal/egress", "internal/obs", "internal/pipeline", "internal/result", "internal/result/*", "internal/secret", "internal/secret/*", "internal/snowflake", "internal/source/*",
		"internal/store", "internal/store/*", "internal/tool", "internal/tool/*", "internal/worker", "web",
	},
	"internal/cli": {
		"client", "internal/control", "internal/event", "internal/failpoint", "internal/jinja", "internal/node", "internal/obs", "internal/obs/otlp", "internal/playbook",
		"internal/doctor", "internal/replay", "internal/scope", "internal/snowflake",
	},

	// Tests and measurements.
	"internal/archtest":   {},
	"internal/testkit":    {"client", "internal/*", "internal/*/*"},
	"internal/testkit/*":  {"client", "internal/*", "internal/*/*"},
	"internal/e2e":        {"client", "internal/*", "internal/*/*"},
	"internal/behaviour":  {},
	"internal/wire":       {},
	"internal/simulation": {},
	"internal/mutants":    {},
	"internal/bench":      {"client", "internal/*", "internal/*/*"},
	"internal/corpus":     {},
}

// testOnly packages may be imported by tests, by each other and by the bench.
var testOnly = []string{
	"internal/testkit", "internal/testkit/*", "internal/api/apitest", "internal/bus/bustest", "internal/store/storetest",
	"internal/tool/tooltest",
}

// pure packages compute: the same input gives the same output, wherever and
// whenever. They use these parts of the standard library and nothing outside
// it, save the modules in pureModules.
var (
	pure = []string{
		"internal/event", "internal/jinja", "internal/playbook", "internal/scope", "internal/engine", "internal/replay", "internal/schedule",
		"internal/tool/schema",
	}
	pureStd = []string{
		"bufio", "bytes", "cmp", "container/*", "crypto/md5", "crypto/sha1", "crypto/sha256", "crypto/sha512", "embed", "encoding", "encoding/*",
		"errors", "fmt", "hash", "hash/*", "html", "io", "iter", "maps", "math", "math/big", "math/bits", "net/url",
		"reflect", "regexp", "slices", "sort", "strconv", "strings", "sync", "sync/atomic", "time", "unicode", "unicode/*",
	}
	pureModules = map[string][]string{
		"internal/playbook": {"go.yaml.in/yaml/v4"},
		"internal/schedule": {"github.com/netresearch/go-cron"},
	}
)

// pkg is what `go list` says of a package.
type pkg struct {
	ImportPath string
	Doc        string
	GoFiles    []string
	Imports    []string
}

func (p *pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

func TestEveryPackageImportsOnlyWhatItsCharterAllows(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, complaint := range checkImports(p) {
			t.Error(complaint)
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no doc comment; say what the package is and what it must not know", p.name())
		}
	}
}

func TestImportRulesCatchOffences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		pkg  pkg
		want string
	}{
		{"upwards", pkg{ImportPath: module + "internal/store/sqlite", Imports: []string{module + "internal/control"}}, "must not import internal/control"},
		{"driver to driver", pkg{ImportPath: module + "internal/store/sqlite", Imports: []string{module + "internal/store/postgres"}}, "must not import internal/store/postgres"},
		{"clockwork in a pure package", pkg{ImportPath: module + "internal/engine", Imports: []string{"os"}}, `must not import "os"`},
		{"a module in a pure package", pkg{ImportPath: module + "internal/engine", Imports: []string{"go.yaml.in/yaml/v4"}}, `must not import "go.yaml.in/yaml/v4"`},
		{"test code in the program", pkg{ImportPath: module + "cmd/noetl", Imports: []string{module + "internal/testkit"}}, "is for tests"},
		{"no charter", pkg{ImportPath: module + "internal/nowhere"}, "has no charter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(checkImports(&c.pkg), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("complaints %q do not say %q", got, c.want)
			}
		})
	}
	allowed := pkg{ImportPath: module + "internal/engine", Imports: []string{"slices", module + "internal/jinja"}}
	if got := checkImports(&allowed); len(got) > 0 {
		t.Errorf("allowed imports are refused: %q", got)
	}
}

func checkImports(p *pkg) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	name := p.name()
	allowed, ok := charter(name)
	if !ok {
		complain("%s has no charter; add it to the table in internal/archtest with what it may import", name)
		return complaints
	}
	isPure := slices.Contains(pure, name)
	for _, imp := range p.Imports {
		own, isOwn := strings.CutPrefix(imp, module)
		switch {
		case isOwn && match(testOnly, own):
			if !match(testOnly, name) && name != "internal/bench" {
				complain("%s must not import %s, which is for tests", name, own)
			}
		case isOwn && !match(allowed, own):
			complain("%s must not import %s; turn the arrow round or pass the value in", name, own)
		case !isOwn && isPure && !match(pureStd, imp) && !slices.Contains(pureModules[name], imp):
			complain("%s is pure and must not import %q; move the effect to its caller", name, imp)
		}
	}
	return complaints
}

// charter finds a package's line in the table: its own, or that of a pattern.
func charter(name string) ([]string, bool) {
	if allowed, ok := may[name]; ok {
		return allowed, true
	}
	for pattern, allowed := range may {
		if match([]string{pattern}, name) {
			return allowed, true
		}
	}
	return nil, false
}

func match(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, s)
		return ok && err == nil
	})
}

func packages(t *testing.T) []*pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Doc,GoFiles,Imports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list the packages: %v", err)
	}
	var list []*pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read the list of packages: %v", err)
		}
		list = append(list, &p)
	}
	if len(list) < 5 {
		t.Fatalf("only %d packages found; the rules would hold for nothing", len(list))
	}
	return list
}
