package node

import (
	"strings"
	"testing"
	"time"
)

func TestSettingsOfProcessesAreReadOrRefused(t *testing.T) {
	for name, tc := range map[string]struct{ variable, text, says string }{
		"a sandbox nobody knows":  {"NOETL_SANDBOX", "loose", `NOETL_SANDBOX: "loose" is not one of standard, trusted`},
		"a size that is none":     {"NOETL_PYTHON_MAX_MEMORY", "lots", `NOETL_PYTHON_MAX_MEMORY: "lots" is not a size`},
		"a blank":                 {"NOETL_PYTHON_MAX_CPU", " ", "NOETL_PYTHON_MAX_CPU is blank"},
		"nothing":                 {"NOETL_SHELL_MAX_DISK", "0", "NOETL_SHELL_MAX_DISK: \"0\" must be more than nothing"},
		"a number that is none":   {"NOETL_PYTHON_IDLE", "two", "NOETL_PYTHON_IDLE: \"two\" is not a whole number"},
		"a flag that is none":     {"NOETL_PYTHON_OFFLINE", "maybe", "NOETL_PYTHON_OFFLINE: value must be true or false"},
		"a time that is negative": {"NOETL_SHELL_MAX_CPU", "-1s", "is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(tc.variable, tc.text)
			if _, err := readProcessOptions("", 4, false); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
	t.Setenv("NOETL_PYTHON_MAX_MEMORY", "2Gi")
	t.Setenv("NOETL_SHELL_MAX_CPU", "90")
	t.Setenv("NOETL_PYTHON_OFFLINE", "yes")
	o, err := readProcessOptions("/data", 7, true)
	if err != nil {
		t.Fatal(err)
	}
	if o.python.Settings.Max.Memory != 2<<30 || o.shell.Max.CPU != 90*time.Second || !o.python.Offline ||
		o.python.Max != 7 || o.python.VenvDir != "/data/venvs" || o.shell.Sandbox != "trusted" {
		t.Errorf("got %+v", o)
	}
}
