package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/container"
	"github.com/noetl/noetl-go/internal/tool/duckdb"
	"github.com/noetl/noetl-go/internal/tool/postgres"
	"github.com/noetl/noetl-go/internal/tool/process"
	"github.com/noetl/noetl-go/internal/tool/python"
	"github.com/noetl/noetl-go/internal/tool/shell"
)

// processOptions are the settings of tools that run processes or hold
// connections.
type processOptions struct {
	python   python.Options
	shell    shell.Options
	postgres postgres.Options
	duckdb   duckdb.Options
	jobs     container.Options
}

// readProcessOptions reads the settings from the environment. A wrong or blank
// one is an error. dataDir is where environments of packages are kept, slots
// how many calls there are at once, local whether a person runs a playbook on
// their own machine.
func readProcessOptions(dataDir string, slots int, local bool) (o processOptions, err error) {
	settings := process.Settings{Sandbox: process.Standard}
	if local {
		settings.Sandbox = process.Trusted
	}
	if err = readSetting("NOETL_SANDBOX", func(text string) error {
		settings.Sandbox = text
		if text != process.Standard && text != process.Trusted {
			return fmt.Errorf("%q is not one of %s, %s", text, process.Standard, process.Trusted)
		}
		return nil
	}); err != nil {
		return o, err
	}
	if dataDir != "" {
		o.duckdb.Dir = filepath.Join(dataDir, "noetldb")
	}
	o.python = python.Options{Settings: settings, Max: slots}
	if o.python.VenvDir, err = venvDir(dataDir); err != nil {
		return o, err
	}
	o.shell = shell.Options{Settings: settings}
	py, sh := &o.python, &o.shell
	for name, read := range map[string]func(string) error{
		"NOETL_PYTHON_MAX_MEMORY":  into(&py.Settings.Max.Memory, process.Bytes),
		"NOETL_PYTHON_MAX_CPU":     into(&py.Settings.Max.CPU, tool.ParseDuration),
		"NOETL_PYTHON_MAX_DISK":    into(&py.Settings.Max.Disk, process.Bytes),
		"NOETL_SHELL_MAX_MEMORY":   into(&sh.Max.Memory, process.Bytes),
		"NOETL_SHELL_MAX_CPU":      into(&sh.Max.CPU, tool.ParseDuration),
		"NOETL_SHELL_MAX_DISK":     into(&sh.Max.Disk, process.Bytes),
		"NOETL_PYTHON_VENVS_DIR":   func(text string) error { py.VenvDir = text; return nil },
		"NOETL_PYTHON_VENVS_BYTES": into(&py.VenvBytes, process.Bytes),
		"NOETL_PYTHON_IDLE":        into(&py.Idle, whole),
		"NOETL_PYTHON_PARENTS":     into(&py.Parents, whole),
		"NOETL_PYTHON_OFFLINE": func(text string) (err error) {
			py.Offline, err = tool.Fields{"value": text}.Bool(false, "value")
			return err
		},
	} {
		if err := readSetting(name, read); err != nil {
			return o, err
		}
	}
	if o.postgres, err = readPostgresOptions(); err != nil {
		return o, err
	}
	o.jobs, err = readContainerOptions()
	return o, err
}

// venvDir is where environments of packages are kept: in the data directory,
// or where programs keep what they can make again.
func venvDir(dataDir string) (string, error) {
	if dataDir == "" {
		cache, err := os.UserCacheDir()
		if err != nil { // no home: the system's temporary directory has to do
			return "", nil
		}
		dataDir = filepath.Join(cache, "noetl")
	}
	dir, err := filepath.Abs(filepath.Join(dataDir, "venvs"))
	if err != nil {
		return "", fmt.Errorf("find the data directory: %w", err)
	}
	return dir, nil
}

// readSetting gives a variable that is set to read. Blank is not a value: a
// deployment that forgot to fill it in should hear of it.
func readSetting(name string, read func(text string) error) error {
	text, ok := os.LookupEnv(name)
	if !ok {
		return nil
	}
	if text = strings.TrimSpace(text); text == "" {
		return fmt.Errorf("%s is blank; give it a value or remove it", name)
	}
	if err := read(text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// into reads a setting that must be more than nothing.
func into[N int | int64 | time.Duration](to *N, parse func(any) (N, error)) func(string) error {
	return func(text string) error {
		n, err := parse(text)
		if err == nil && n <= 0 {
			err = fmt.Errorf("%q must be more than nothing", text)
		}
		*to = n
		return err
	}
}

func whole(v any) (int, error) {
	text, err := tool.Text(v)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > 1000 {
		return 0, fmt.Errorf("%q is not a whole number up to 1000", text)
	}
	return n, nil
}
