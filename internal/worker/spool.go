package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	spoolFiles = 10_000
	spoolBytes = 512 << 20
	spoolExt   = ".json"
	spoilt     = ".unreadable" // what becomes of the extension of a file nobody can read
	unfinished = "writing-"    // begins the names of files that are being written
	// abandoned is the age from which an unfinished file is nobody's any more.
	abandoned = time.Hour
)

// Spool keeps on disk the reports that could not be delivered while the claim
// lasted, until they can be. Several processes may share one: a report that is
// delivered twice is recognised by its event id.
type Spool struct {
	dir      string
	maxFiles int
	maxBytes int64

	mu    sync.Mutex // guards what follows, and orders writes
	files map[string]spooled
	bytes int64
	wake  chan struct{}
}

// spooled is what is known of a file without reading it. The command is 0 when
// a former process wrote it.
type spooled struct {
	size    int64
	command event.ID
}

// spoolRecord is the content of a file.
type spoolRecord struct {
	Version   int          `json:"version"`
	EventID   event.ID     `json:"command_event_id"`
	CommandID string       `json:"command_id"`
	Attempt   int          `json:"attempt,omitempty"`
	Report    event.Report `json:"report"`
}

// OpenSpool opens the spool in a directory and makes it when it is not there.
// Reports that a former process left are delivered like new ones.
func OpenSpool(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &event.Error{
			Code: event.Invalid, Message: "open the spool for undelivered reports: " + err.Error(), Err: err,
			Remedy: "name a directory the worker may write to with NOETL_WORKER_SPOOL_DIR, or say off",
		}
	}
	s := &Spool{dir: dir, maxFiles: spoolFiles, maxBytes: spoolBytes, files: map[string]spooled{}, wake: make(chan struct{}, 1)}
	if err := s.scan(); err != nil {
		return nil, fmt.Errorf("open the spool for undelivered reports: %w", err)
	}
	return s, nil
}

// scan learns of the files of other processes, former or present.
func (s *Spool) scan() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	found := make(map[string]spooled, len(entries))
	s.bytes = 0
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // another process was faster, or it is none of ours
		}
		switch name := e.Name(); {
		case strings.HasPrefix(name, unfinished):
			if time.Since(info.ModTime()) > abandoned {
				_ = os.Remove(filepath.Join(s.dir, name)) // it holds half a report at best
			}
		case strings.HasSuffix(name, spoolExt):
			found[name] = spooled{size: info.Size(), command: s.files[name].command}
			s.bytes += info.Size()
		}
	}
	s.files = found
	return nil
}

// put makes a report durable. Its event id decides the order of delivery.
func (s *Spool) put(r spoolRecord) error {
	r.Version = 1
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) >= s.maxFiles || s.bytes+int64(len(body)) > s.maxBytes {
		return event.Errorf(event.Limit, "the spool is full: it holds %d reports of %d bytes together", len(s.files), s.bytes)
	}
	name := fmt.Sprintf("%020d%s", r.Report.Events[0].EventID, spoolExt)
	if err := s.write(name, body); err != nil {
		return err
	}
	s.bytes += int64(len(body)) - s.files[name].size
	s.files[name] = spooled{size: int64(len(body)), command: r.EventID}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// write makes a file appear as a whole, and stay when the power fails.
func (s *Spool) write(name string, body []byte) (err error) {
	f, err := os.CreateTemp(s.dir, unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(s.dir, name)); err != nil {
		return err
	}
	return syncDir(s.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// names lists the files in the order of delivery.
func (s *Spool) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.files))
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// holds tells whether a report of the command waits here.
func (s *Spool) holds(command event.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.command == command {
			return true
		}
	}
	return false
}

// Waiting is the number of reports that wait to be delivered.
func (s *Spool) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files)
}

// read returns a report. ErrNotExist says that another process delivered it;
// one that cannot be understood is put aside for people to look at.
func (s *Spool) read(name string) (r spoolRecord, err error) {
	path := filepath.Join(s.dir, name)
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.forget(name)
		return r, err
	}
	if err != nil {
		return r, err
	}
	if err = json.Unmarshal(body, &r); err == nil && (r.Version != 1 || len(r.Report.Events) == 0) {
		err = event.Errorf(event.Invalid, "a report of version %d with %d events", r.Version, len(r.Report.Events))
	}
	if err != nil {
		s.forget(name)
		return r, errors.Join(err, os.Rename(path, path+spoilt))
	}
	s.mu.Lock()
	f := s.files[name]
	f.command = r.EventID
	s.files[name] = f
	s.mu.Unlock()
	return r, nil
}

// remove takes out a report that is dealt with.
func (s *Spool) remove(name string) error {
	err := os.Remove(filepath.Join(s.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		s.forget(name)
	}
	return err
}

func (s *Spool) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= s.files[name].size
	delete(s.files, name)
}
