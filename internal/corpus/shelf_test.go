package corpus_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// document is a file of the corpus that can be put into a catalog.
type document struct {
	file string // below playbooks/
	path string // by its metadata
	src  string
}

// shelf holds all documents.
type shelf struct {
	byFile map[string]*document
	byPath map[string]*document
}

func fillShelf() (*shelf, error) {
	root := filepath.Join(fixtures, "playbooks")
	s := &shelf{byFile: map[string]*document{}, byPath: map[string]*document{}}
	return s, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var head struct {
			Metadata struct {
				Path string `yaml:"path"`
			} `yaml:"metadata"`
		}
		if err := yaml.Unmarshal(src, &head); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		doc := &document{file: filepath.ToSlash(rel), path: head.Metadata.Path, src: string(src)}
		s.byFile[doc.file] = doc
		if s.byPath[doc.path] == nil {
			s.byPath[doc.path] = doc
		}
		return nil
	})
}

// named finds values of a document that may be paths of others.
var named = regexp.MustCompile(`(?m)^\s*(?:- )?[\w.]*(?:path|playbook|playbook_path)\s*:\s*['"]?([\w./-]+)['"]?\s*$`)

// called are the documents that one refers to, and those refer to, each under
// the path by which it is called.
func (s *shelf) called(doc *document) map[string]*document {
	found := map[string]*document{}
	for todo := []*document{doc}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		for _, m := range named.FindAllStringSubmatch(at.src, -1) {
			name := m[1]
			child := s.find(at, name)
			if child == nil || child == doc || found[name] != nil {
				continue
			}
			found[name] = child
			todo = append(todo, child)
		}
	}
	return found
}

// find looks for a document under a path, under the path without the folder
// that some copies put before it, or under a file name relative to who asks.
func (s *shelf) find(from *document, name string) *document {
	if doc := s.byPath[name]; doc != nil {
		return doc
	}
	if strings.HasPrefix(name, "./") {
		return s.byFile[path.Join(path.Dir(from.file), name)]
	}
	if under, ok := strings.CutPrefix(name, "tests/"); ok {
		return s.byPath[under]
	}
	return nil
}

// as is the text of a document with another path.
func (d *document) as(name string) string {
	if name == d.path {
		return d.src
	}
	was := regexp.MustCompile(`(?m)^(\s+path:\s*)` + regexp.QuoteMeta(d.path) + `\s*$`)
	first := was.FindStringSubmatchIndex(d.src)
	return d.src[:first[0]] + d.src[first[2]:first[3]] + name + d.src[first[1]:]
}
