package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// Memory names a database that lives as long as the call.
const Memory = ":memory:"

// Options say where database files are.
type Options struct {
	// Dir holds the files of executions, scratch space and extensions. It is
	// made when first needed.
	Dir string
	// Keep is how long the file of an execution stays after its last use; 0 = a day.
	Keep time.Duration
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Files knows the database files of this process. A file is used by one call at
// a time: DuckDB has one writer, and what a call attaches, sets or creates as a
// secret lives in the open database, where another call must not find it.
type Files struct {
	opts  Options
	mu    sync.Mutex
	gates map[string]*gate
	swept time.Time
}

// gate lets one call at a time through to a file.
type gate struct {
	free    chan struct{} // holds one token while nobody is in
	waiting int           // how many know the gate
}

// NewFiles makes the register of open files.
func NewFiles(opts Options) *Files {
	if opts.Keep == 0 {
		opts.Keep = 24 * time.Hour
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Files{opts: opts, gates: map[string]*gate{}}
}

const (
	prefix = "duckdb_"
	suffix = ".duckdb"
)

// Path is the file that a `database` means: nothing is the execution's own, a
// relative one is in the directory of database files, an absolute one is taken
// as it is.
func (r *Files) Path(database, executionID string) (string, error) {
	switch {
	case database == Memory:
		return Memory, nil
	case database == "" && executionID == "":
		return Memory, nil
	case database == "":
		database = prefix + filepath.Base(executionID) + suffix
	case strings.ContainsAny(database, "?#%\x00"):
		return "", tool.ConfigErrorf("the database file %q cannot be opened: its name must not have any of ? # %%", database)
	}
	if filepath.IsAbs(database) {
		return filepath.Clean(database), nil
	}
	if !filepath.IsLocal(database) {
		return "", tool.ConfigErrorf("the database file %q leaves the directory of databases; write an absolute path", database)
	}
	dir, err := filepath.Abs(r.dir())
	if err != nil {
		return "", fmt.Errorf("find the directory of databases: %w", err)
	}
	return filepath.Join(dir, database), nil
}

// Hold is the right to use some files until it is released.
type Hold struct {
	files *Files
	paths []string
	open  map[string]database
}

// Acquire waits until nobody else in this process uses the files. All that a
// call needs must be asked for at once: they are taken in order, so that two
// calls cannot wait for each other.
func (r *Files) Acquire(ctx context.Context, paths ...string) (*Hold, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.sweep()
	want := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == Memory })
	slices.Sort(want)
	h := &Hold{files: r, open: map[string]database{}}
	for _, path := range slices.Compact(want) {
		if err := r.enter(ctx, path); err != nil {
			return nil, errors.Join(err, h.Release())
		}
		h.paths = append(h.paths, path)
	}
	return h, nil
}

func (r *Files) enter(ctx context.Context, path string) error {
	r.mu.Lock()
	g := r.gates[path]
	if g == nil {
		g = &gate{free: make(chan struct{}, 1)}
		g.free <- struct{}{}
		r.gates[path] = g
	}
	g.waiting++
	r.mu.Unlock()
	select {
	case <-g.free:
		return nil
	case <-ctx.Done():
		r.forget(path, g)
		return ctx.Err()
	}
}

func (r *Files) leave(path string) {
	r.mu.Lock()
	g := r.gates[path]
	r.mu.Unlock()
	g.free <- struct{}{}
	r.forget(path, g)
}

func (r *Files) forget(path string, g *gate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.waiting--; g.waiting == 0 {
		delete(r.gates, path)
	}
}

// Connect opens a connection to a file of the hold. It must be closed before
// the hold is released.
func (h *Hold) Connect(ctx context.Context, path string) (*Conn, error) {
	db := h.open[path]
	if db == nil {
		var err error
		if db, err = h.files.openFile(path); err != nil {
			return nil, err
		}
		h.open[path] = db
	}
	c, err := db.connect(ctx)
	if err != nil {
		return nil, failure(err)
	}
	return &Conn{c}, nil
}

// Release closes the files and lets others in.
func (h *Hold) Release() error {
	var errs []error
	for path, db := range h.open {
		errs = append(errs, db.close())
		if path != Memory {
			h.files.touch(path)
		}
	}
	h.open = nil
	for _, path := range h.paths {
		h.files.leave(path)
	}
	h.paths = nil
	return errors.Join(errs...)
}

func (r *Files) openFile(path string) (database, error) {
	dirs := []string{r.Scratch()}
	if path != Memory {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, &tool.Error{Kind: tool.KindStorageAccess, Code: "DATABASE_DIRECTORY", Message: fmt.Sprintf("make the directory of the DuckDB database: %v", err)}
		}
	}
	db, err := library.open(path, map[string]string{
		"temp_directory":      filepath.Join(r.Scratch(), "spill"),
		"extension_directory": filepath.Join(r.dir(), "extensions"),
	})
	if err != nil {
		return nil, failure(err)
	}
	if path != Memory {
		r.touch(path)
	}
	return db, nil
}

func (r *Files) dir() string {
	if r.opts.Dir == "" {
		return filepath.Join(os.TempDir(), "noetldb")
	}
	return r.opts.Dir
}

// Scratch is where data goes that does not fit into memory.
func (r *Files) Scratch() string { return filepath.Join(r.dir(), "tmp") }

// touch notes that a file is in use, also by those who only read it.
func (r *Files) touch(path string) {
	now := r.opts.Now()
	_ = os.Chtimes(path, now, now) // a file that cannot be touched is removed a little early at worst
}

// sweep removes the files of executions that nobody used for long. It looks
// once an hour, when a file is asked for.
func (r *Files) sweep() {
	now := r.opts.Now()
	r.mu.Lock()
	due := r.swept.IsZero() || now.Sub(r.swept) >= time.Hour
	if due {
		r.swept = now
	}
	r.mu.Unlock()
	if !due {
		return
	}
	entries, err := os.ReadDir(r.dir())
	if err != nil {
		return // nothing was made yet
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			r.removeOld(e, now)
		}
	}
}

func (r *Files) removeOld(e fs.DirEntry, now time.Time) {
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < r.opts.Keep {
		return
	}
	path, err := filepath.Abs(filepath.Join(r.dir(), e.Name()))
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gates[path] != nil {
		return
	}
	_ = os.Remove(path)
	_ = os.Remove(path + ".wal")
}
