// Package process prepares what a process of an action runs in: a private
// directory, an environment built from scratch, files and credentials that the
// step names, and limits. It must not know what is run there or of workflows.
package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// The sandboxes: how much of the worker's machine a step may see.
const (
	// Standard gives a step a home and a working directory of its own and keeps
	// it from gaining rights.
	Standard = "standard"
	// Trusted is for a person's own machine: steps run where the worker was
	// started, at home.
	Trusted = "trusted"
)

// DefaultGrace is how long a process group may take to end after SIGTERM.
const DefaultGrace = 5 * time.Second

// Settings are the worker's, for every call. The zero value is fine.
type Settings struct {
	Sandbox string        // Standard when ""
	TempDir string        // where private directories are made; "" = the system's
	Max     Limits        // what no step may ask beyond, and has without asking
	Grace   time.Duration // DefaultGrace when 0
}

// WithDefaults fills in what is not set.
func (s Settings) WithDefaults() Settings {
	if s.Sandbox == "" {
		s.Sandbox = Standard
	}
	if s.Grace <= 0 {
		s.Grace = DefaultGrace
	}
	return s
}

// Wish is what a step asks for.
type Wish struct {
	Cwd       string            // "" = the private directory, or the worker's own when trusted
	Env       map[string]string // wins over everything else
	Resources map[string]any    // cpu, memory, disk, timeout
	Files     map[string]any    // names to references
	Logins    map[string]*tool.Credential
}

// Place is where one call runs. Remove it when the call has ended.
type Place struct {
	Dir    string            // private; holds files and temporary data
	Cwd    string            // where the process starts
	Env    map[string]string // beside what every process gets
	Files  map[string]string // names to paths
	Limits Limits

	started string // Cwd, or the worker's own directory where that is meant
}

// Prepare makes the place; the error is an *tool.Error that names the field.
func (s Settings) Prepare(ctx context.Context, call *tool.Call, w Wish) (_ *Place, err error) {
	limits, err := s.Max.narrow(w.Resources)
	if err != nil {
		return nil, err
	}
	if info, statErr := os.Stat(w.Cwd); w.Cwd != "" && (statErr != nil || !info.IsDir()) {
		return nil, tool.ConfigErrorf("cwd %q is not a directory on this worker", w.Cwd)
	}
	dir, err := os.MkdirTemp(s.TempDir, "noetl-step-")
	if err != nil {
		return nil, noDirectory(err)
	}
	p := &Place{Dir: dir, Cwd: w.Cwd, Limits: limits, Env: map[string]string{"NOETL_WORK_DIR": dir}}
	defer func() {
		if err != nil {
			_ = p.Remove() // the reason matters more
		}
	}()
	call.Trace.Environ(p.Env)
	if s.Sandbox != Trusted {
		p.Env["HOME"], p.Env["TMPDIR"] = dir, dir
		if p.Cwd == "" {
			p.Cwd = dir
		}
	}
	if p.started = p.Cwd; p.started == "" {
		if p.started, err = os.Getwd(); err != nil {
			return nil, noDirectory(err)
		}
	}
	if err := p.addCredentials(w.Logins); err != nil {
		return nil, err
	}
	if err := p.addFiles(ctx, call, w.Files); err != nil {
		return nil, err
	}
	for name, v := range w.Env {
		p.Env[name] = v
	}
	return p, p.checkEnv()
}

// checkEnv refuses what no environment can hold, without showing values.
func (p *Place) checkEnv() error {
	for name, v := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return tool.ConfigErrorf("env: %q cannot be the name of a variable", name)
		}
		if strings.ContainsRune(v, 0) {
			return tool.ConfigErrorf("env: the value of %s holds a NUL character, which no variable can carry", name)
		}
	}
	return nil
}

// Remove ends the place. What a step made unwritable goes too.
func (p *Place) Remove() error {
	err := os.RemoveAll(p.Dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(p.Dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(p.Dir); err != nil {
		return fmt.Errorf("remove the private directory of a step: %w", err)
	}
	return nil
}

// Open opens a file that the process made, by a path relative to where it ran.
// Links cannot lead out of the place.
func (p *Place) Open(path string) (*os.File, error) {
	roots := []string{p.started, p.Dir}
	if !filepath.IsAbs(path) {
		path = filepath.Join(roots[0], path)
	}
	for _, dir := range roots {
		rel, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		f, err := root.Open(rel)
		return f, errors.Join(err, root.Close())
	}
	return nil, fmt.Errorf("%s is outside the working directory of the step", path)
}

func noDirectory(err error) *tool.Error {
	e := &tool.Error{Kind: tool.KindStorageAccess, Code: "NO_DIRECTORY", Message: "the worker cannot make a private directory for the step: " + err.Error()}
	if isFull(err) {
		e.Kind = tool.KindStorageQuota
	}
	return e
}
