package testkit

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/noetl/noetl-go"

// BuildNoetl is the path of the noetl binary, built once per test process. It
// has the race detector when the test has it.
func BuildNoetl(t testing.TB) string {
	t.Helper()
	return built(t, buildNoetl)
}

var (
	buildNoetl = sync.OnceValues(func() (string, error) { return build("cmd/noetl", raceEnabled) })
	buildNATS  = sync.OnceValues(func() (string, error) { return build("internal/testkit/natsd", false) })
)

func built(t testing.TB, once func() (string, error)) string {
	t.Helper()
	path, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build compiles a command of this module into the scratch directory.
func build(pkg string, race bool) (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", modulePath, err)
	}
	path := filepath.Join(dir, filepath.Base(pkg))
	args := []string{"build", "-o", path}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}
