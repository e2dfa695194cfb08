package python

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	defaultVenvBytes = 5 << 30
	// lockTick is how often a waiter looks whether somebody else is done.
	lockTick = 100 * time.Millisecond
	// complete is the file that tells a finished environment from a torso.
	complete = "noetl.json"
)

// shelf keeps virtual environments by what is in them, also between processes.
// Each has a lock file beside it: held shared by who uses the environment and
// alone by who makes or removes it.
type shelf struct {
	dir     string
	max     int64 // bytes of all environments together; those in use may exceed it
	offline bool
}

// lease keeps an environment from being removed.
type lease struct {
	dir  string
	lock *os.File
}

func (l *lease) python() string { return filepath.Join(l.dir, "bin", "python") }

// release closes the lock file, which gives the lock back.
func (l *lease) release() { l.lock.Close() }

// note is what is known of a finished environment.
type note struct {
	Python string   `json:"python"`
	Specs  []string `json:"specs"`
	Bytes  int64    `json:"bytes"`
}

// venvHash names an environment by everything that decides what is in it.
func venvHash(base interpreter, specs []string) string {
	sum := sha256.Sum256([]byte(base.path + "\x00" + base.version + "\x00" + joinSpecs(specs)))
	return hex.EncodeToString(sum[:16])
}

// acquire finds the environment or makes it. Of several who want the same one
// at the same time, here or in other processes, one makes it.
func (s *shelf) acquire(ctx context.Context, base interpreter, specs []string, log io.Writer) (*lease, error) {
	name := venvHash(base, specs)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, venvError("the directory for environments cannot be made: %v", err)
	}
	lock, err := os.OpenFile(filepath.Join(s.dir, name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, venvError("the environment cannot be locked: %v", err)
	}
	l := &lease{dir: filepath.Join(s.dir, name), lock: lock}
	if err := s.obtain(ctx, l, base, specs, log); err != nil {
		l.release()
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(l.dir, complete), now, now) // used just now
	return l, nil
}

// obtain returns with the environment finished and the lock held shared.
func (s *shelf) obtain(ctx context.Context, l *lease, base interpreter, specs []string, log io.Writer) error {
	tick := time.NewTicker(lockTick)
	defer tick.Stop()
	told := false
	for {
		if tryLock(l.lock, unix.LOCK_SH) {
			if l.finished() {
				return nil
			}
			if s.offline {
				return &tool.Error{
					Kind: tool.KindConfig, Code: "DEPS_OFFLINE",
					Message: "deps: the environment with " + strings.Join(specs, ", ") + " is not on this worker, and NOETL_PYTHON_OFFLINE keeps it from being made",
				}
			}
			// Others may ask the same at the same moment: one of them gets it.
			_ = unix.Flock(int(l.lock.Fd()), unix.LOCK_UN)
		}
		if tryLock(l.lock, unix.LOCK_EX) {
			if !l.finished() {
				if err := s.build(ctx, l, base, specs, log); err != nil {
					return err
				}
				s.sweep(filepath.Base(l.dir))
			}
			// Not in one step, so the next round looks again.
			_ = unix.Flock(int(l.lock.Fd()), unix.LOCK_UN)
			continue
		}
		if !told {
			fmt.Fprintln(log, "waiting for the python environment that another step is making")
			told = true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func tryLock(f *os.File, how int) bool {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

func (l *lease) finished() bool {
	_, err := os.Stat(filepath.Join(l.dir, complete))
	return err == nil
}

// build makes the environment; when it fails nothing of it is left.
func (s *shelf) build(ctx context.Context, l *lease, base interpreter, specs []string, log io.Writer) (err error) {
	if err := os.RemoveAll(l.dir); err != nil { // of a worker that died over it
		return venvError("what is left of an unfinished environment cannot be removed: %v", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(l.dir)
		}
	}()
	fmt.Fprintf(log, "making a python environment with %s\n", strings.Join(specs, ", "))
	if err := install(ctx, base, l, specs, log); err != nil {
		return err
	}
	text, err := json.Marshal(note{Python: base.path, Specs: specs, Bytes: sizeOf(l.dir)})
	if err != nil {
		return venvError("the environment cannot be described: %v", err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, complete), text, 0o600); err != nil {
		return venvError("the environment cannot be finished: %v", err)
	}
	return nil
}

// kept is one finished environment as the sweep sees it.
type kept struct {
	name  string
	bytes int64
	used  time.Time
}

// sweep removes the environments that were not used for the longest time until
// the rest fits. Those in use, and the one named, stay.
func (s *shelf) sweep(keep string) {
	all, total := s.list()
	for total > s.max {
		oldest := -1
		for i := range all {
			if all[i].name != keep && (oldest < 0 || all[i].used.Before(all[oldest].used)) {
				oldest = i
			}
		}
		if oldest < 0 {
			return
		}
		if s.remove(all[oldest].name) {
			total -= all[oldest].bytes
		}
		all = append(all[:oldest], all[oldest+1:]...)
	}
}

func (s *shelf) list() (all []kept, total int64) {
	notes, _ := filepath.Glob(filepath.Join(s.dir, "*", complete))
	for _, path := range notes {
		var n note
		info, err := os.Stat(path)
		text, readErr := os.ReadFile(path)
		if err != nil || readErr != nil || json.Unmarshal(text, &n) != nil {
			continue // removed meanwhile, or not ours
		}
		all = append(all, kept{name: filepath.Base(filepath.Dir(path)), bytes: n.Bytes, used: info.ModTime()})
		total += n.Bytes
	}
	return all, total
}

// remove deletes an environment that nobody uses. Its lock file stays: who
// waits for the lock must wait for the same file.
func (s *shelf) remove(name string) bool {
	lock, err := os.OpenFile(filepath.Join(s.dir, name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false
	}
	defer lock.Close()
	if !tryLock(lock, unix.LOCK_EX) {
		return false
	}
	// Without its note it is a torso, should this process die half-way.
	dir := filepath.Join(s.dir, name)
	return os.Remove(filepath.Join(dir, complete)) == nil && os.RemoveAll(dir) == nil
}

func sizeOf(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, infoErr := d.Info(); infoErr == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

func venvError(format string, args ...any) *tool.Error {
	return &tool.Error{Kind: tool.KindStorageAccess, Code: "DEPS_STORAGE", Message: "deps: " + fmt.Sprintf(format, args...)}
}
