package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
)

// shelf collects the playbook files that a run may start besides its own, each
// under the path by which tasks name it.
type shelf struct {
	env   *Env
	books []book
}

type book struct {
	path string // in the catalog
	file string
	src  []byte
}

func newShelf(env *Env) *shelf { return &shelf{env: env} }

// fill takes every playbook below a directory, under the path in its metadata.
// Other documents are passed over. Playbooks with errors are told of and left
// out: most runs need few of them.
func (s *shelf) fill(dir string) error {
	if dir == "" {
		return nil
	}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isYAML(file) {
			return err
		}
		src, pb, problems, err := readPlaybook(file)
		switch {
		case err != nil:
			return err
		case slices.ContainsFunc(problems, func(p playbook.Problem) bool { return p.Code == "not_a_playbook" || p.Code == "wrong_kind" }):
			return nil
		case pb == nil:
			fmt.Fprintf(s.env.Stderr, "%v\n%s is left out of the catalog\n", problems.Err(), file)
			return nil
		}
		if other := s.find(pb.Metadata.Path); other != nil {
			return invalidf("%s and %s have the same path %q: give one of them another metadata.path", other.file, file, pb.Metadata.Path)
		}
		s.books = append(s.books, book{pb.Metadata.Path, file, src})
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return invalidf("--catalog %s: no such directory", dir)
	}
	return err
}

// follow takes the playbooks that tasks of a playbook name by a file, and those
// that these name. Paths are relative to the file they stand in; the extension
// may be left out. A path without a file is left to the catalog.
func (s *shelf) follow(file string, pb *playbook.Playbook) error {
	for _, step := range pb.Steps {
		for _, task := range step.Tasks {
			path, ok := childPath(task)
			if !ok {
				continue
			}
			child, ok := childFile(file, path)
			if !ok {
				continue
			}
			if err := s.take(path, child); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shelf) take(path, file string) error {
	if known := s.find(path); known != nil {
		if sameFile(known.file, file) {
			return nil
		}
		return invalidf("%s and %s would both be the playbook %q: name them by different paths", known.file, file, path)
	}
	src, pb, problems, err := readPlaybook(file)
	if err != nil {
		return err
	}
	if err := problems.Err(); err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(s.env.Stderr, p)
	}
	s.books = append(s.books, book{path, file, src})
	return s.follow(file, pb)
}

func (s *shelf) find(path string) *book {
	for i := range s.books {
		if strings.Trim(s.books[i].path, "/ ") == strings.Trim(path, "/ ") {
			return &s.books[i]
		}
	}
	return nil
}

// register puts all of them into the catalog.
func (s *shelf) register(ctx context.Context, plane *control.Plane) error {
	for _, b := range s.books {
		if _, err := plane.Register(ctx, control.RegisterRequest{Content: string(b.src), Path: b.path}); err != nil {
			return fmt.Errorf("%s: %w", b.file, err)
		}
	}
	return nil
}

// childPath is the path of the playbook that a task starts, unless that is only
// known when it runs.
func childPath(task *playbook.Task) (string, bool) {
	if task.Kind != "playbook" || task.Config == nil {
		return "", false
	}
	config, ok := task.Config.Raw().(*jinja.Dict)
	if !ok {
		return "", false
	}
	v, _ := config.Get("path")
	path, ok := v.(string)
	path = strings.TrimSpace(path)
	return path, ok && path != "" && !jinja.HasSyntax(path)
}

// childFile finds the file of a path that stands in another file.
func childFile(file, path string) (string, bool) {
	at := filepath.Join(filepath.Dir(file), filepath.FromSlash(path))
	for _, extension := range []string{"", ".yaml", ".yml"} {
		if info, err := os.Stat(at + extension); err == nil && info.Mode().IsRegular() {
			return at + extension, true
		}
	}
	return "", false
}

func sameFile(a, b string) bool {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	return errOne == nil && errOther == nil && os.SameFile(one, other)
}

func isYAML(file string) bool {
	ext := filepath.Ext(file)
	return ext == ".yaml" || ext == ".yml"
}
