package python

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// findInterpreter looks a program up without running it.
func findInterpreter(option string) (string, error) {
	name, from := option, "the configured interpreter"
	if name == "" {
		name, from = os.Getenv("PYTHON_PATH"), "PYTHON_PATH"
	}
	if name == "" {
		name, from = "python3", "PATH"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", tool.ConfigErrorf("no Python interpreter %q (from %s); install python3 or set PYTHON_PATH", name, from)
	}
	return path, nil
}

// interpreter is the program behind a name.
type interpreter struct {
	path    string
	version string // of the language, and what its packages are made for
}

const probe = `import sys, platform; print(sys.executable); print("%d.%d.%d" % sys.version_info[:3], sys.implementation.name, platform.machine()); print(sys.version_info >= (3, 9))`

// resolve asks the program for the interpreter behind it: a pyenv shim costs
// a hundred milliseconds at every start, the interpreter itself a tenth. The
// program runs with the worker's environment, because shims depend on it.
func resolve(ctx context.Context, path string) (interpreter, error) {
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(limited, path, "-c", probe)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			return interpreter{}, ctx.Err()
		}
		return interpreter{}, tool.ConfigErrorf("%s does not work as a Python interpreter: %v: %s", path, err, lastLine(stderr.String()))
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 || lines[0] == "" {
		return interpreter{}, tool.ConfigErrorf("%s does not answer like a Python interpreter", path)
	}
	if lines[2] != "True" {
		return interpreter{}, tool.ConfigErrorf("%s is Python %s; 3.9 or newer is needed", lines[0], lines[1])
	}
	return interpreter{path: lines[0], version: lines[1]}, nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
