package python_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/python"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// localPackage is a package that needs no index to be installed: a source tree
// with its own build backend.
func localPackage(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	backend := `import base64, hashlib, os, zipfile
def get_requires_for_build_wheel(config_settings=None): return []
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if os.environ.get("PIP_NOETL_SLOW"):
        import time; print("building", flush=True); time.sleep(600)
    name = "NAME-1.0-py3-none-any.whl"
    info = "NAME-1.0.dist-info/"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as z:
        z.writestr("NAME.py", "value = 'NAME here'\n")
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: NAME\nVersion: 1.0\n")
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", "")
    return name
`
	for file, text := range map[string]string{
		"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n",
		"backend.py":     strings.ReplaceAll(backend, "NAME", name),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func environments(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, e.Name())
		}
	}
	return found
}

func depsCall(code string, specs ...any) *tool.Call {
	call := callOf(code, nil)
	call.Config["deps"] = specs
	return call
}

func TestPackagesAreInstalledOnceAndKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Two tools stand for two workers on one machine.
	tools := []*python.Tool{newTool(t, python.Options{VenvDir: dir}), newTool(t, python.Options{VenvDir: dir})}
	spec := localPackage(t, "noetl_one")
	var group sync.WaitGroup
	var logs [4]strings.Builder
	for i := range 4 {
		group.Go(func() {
			call := depsCall("import noetl_one\nresult = [noetl_one.value, sys.prefix != sys.base_prefix, os.environ['VIRTUAL_ENV'] == sys.prefix]", spec)
			call.Log = &logs[i]
			res, err := tools[i%2].Run(t.Context(), call)
			if err != nil || string(res.Data) != `["noetl_one here",true,true]` {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
	group.Wait()
	made := 0
	for i := range logs {
		made += strings.Count(logs[i].String(), "making a python environment")
	}
	if found := environments(t, dir); made != 1 || len(found) != 1 {
		t.Errorf("made %d times, environments %v", made, found)
	}
	// It is there for a worker that may not make any.
	offline := newTool(t, python.Options{VenvDir: dir, Offline: true})
	if _, err := offline.Run(t.Context(), depsCall("import noetl_one", spec)); err != nil {
		t.Error(err)
	}
	if _, e := fails(t, offline, depsCall("1", "six")); e.Kind != "config" || e.Code != "DEPS_OFFLINE" {
		t.Errorf("got %+v", e)
	}
	// The worker's own interpreter does not have it.
	if _, e := fails(t, tools[0], callOf("import noetl_one", nil)); e.Code != "PY_ModuleNotFoundError" {
		t.Errorf("got %+v", e)
	}
	call := depsCall("result = 1", spec)
	call.Config["libs"] = []any{"no_such_module"}
	if _, e := fails(t, tools[0], call); e.Kind != "config" || e.Code != "PY_ModuleNotFoundError" {
		t.Errorf("got %+v", e)
	}
}

func TestAFailedOrCancelledInstallLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	tl := newTool(t, python.Options{VenvDir: dir})
	broken := t.TempDir() // no package in it
	if _, e := fails(t, tl, depsCall("1", broken)); e.Kind != "config" || e.Code != "DEPS_INSTALL" || !strings.Contains(e.Message, "deps cannot be installed") {
		t.Errorf("got %+v", e)
	}
	if found := environments(t, dir); found != nil {
		t.Errorf("left behind: %v", found)
	}
	t.Setenv("PIP_NOETL_SLOW", "1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := tooltest.NewSignal()
	call := depsCall("1", localPackage(t, "noetl_slow"))
	call.Log = log
	go func() {
		<-log.Written()
		cancel()
	}()
	start := time.Now()
	_, err := tl.Run(ctx, call)
	if err == nil || !strings.Contains(err.Error(), "cancelled") || time.Since(start) > 60*time.Second {
		t.Errorf("got %v", err)
	}
	if found := environments(t, dir); found != nil {
		t.Errorf("left behind: %v", found)
	}
}

// withUV puts a program in the place of uv that makes environments and installs
// a module named after each requirement.
func withUV(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
if [ "$1" = venv ]; then exec "$3" -m venv --without-pip "$4"; fi
python=$4; shift 5
for spec; do "$python" -c "import sys, sysconfig; open(sysconfig.get_path('purelib') + '/' + sys.argv[1] + '.py', 'w')" "$spec"; done
`
	if err := os.WriteFile(filepath.Join(dir, "uv"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

func TestOldEnvironmentsMakeRoom(t *testing.T) {
	withUV(t)
	dir := t.TempDir()
	options := python.Options{VenvDir: dir, VenvBytes: 1}
	first, second := newTool(t, options), newTool(t, options)
	if _, err := first.Run(t.Context(), depsCall("import first", "first")); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Run(t.Context(), depsCall("import second", "second")); err != nil {
		t.Fatal(err)
	}
	if found := environments(t, dir); len(found) != 2 {
		t.Errorf("an environment in use was removed: %v", found)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Run(t.Context(), depsCall("import third", "third")); err != nil {
		t.Fatal(err)
	}
	if found := environments(t, dir); len(found) != 2 {
		t.Errorf("want the second and the third, found %v", found)
	}
	if _, err := second.Run(t.Context(), depsCall("import second", "second")); err != nil {
		t.Errorf("what is in use is gone: %v", err)
	}
}

func TestAPackageComesFromTheIndex(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a package index")
	}
	tl := newTool(t, python.Options{VenvDir: t.TempDir()})
	call := callOf("import six\nresult = six.__version__", nil)
	call.Config["deps"] = map[string]any{"packages": map[string]any{"tenant": []any{"six==1.16.0"}}}
	res, err := tl.Run(t.Context(), call)
	if e, ok := err.(*tool.Error); ok && e.Kind == "connection" && e.Retryable {
		t.Skipf("no package index can be reached: %v", e)
	}
	if err != nil || string(res.Data) != `"1.16.0"` {
		t.Errorf("got %+v, %v", res, err)
	}
}
