package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// reference names a playbook: a file here, or something in a catalog.
type reference struct {
	file    string   // "" for one of a catalog
	target  string   // the step a word without a file means
	path    string   // in the catalog
	id      event.ID // of the catalog entry
	version int      // 0 is the latest
}

// catalogRef reads what stands for a playbook of a catalog: its path,
// catalog://path@version, or pbk_ID.
func catalogRef(text string, version int) (reference, error) {
	ref := reference{version: version}
	if id, ok := strings.CutPrefix(text, "pbk_"); ok {
		n, err := event.ParseID(id)
		if err == nil {
			ref.id = n
			return ref, nil
		}
		ref.path = text // a path may begin like that too
		return ref, nil
	}
	rest, scheme := strings.CutPrefix(text, "catalog://")
	if path, v, ok := cutLast(rest, "@"); ok && (scheme || isNumber(v) || v == "latest") {
		rest = path
		if v != "latest" {
			n, err := strconv.Atoi(strings.TrimPrefix(v, "v"))
			if err != nil || n < 1 {
				return ref, invalidf("%s: the version after @ is %q: want a number, or latest", text, v)
			}
			if version != 0 && version != n {
				return ref, invalidf("%s says version %d and --version %d: give one of them", text, n, version)
			}
			ref.version = n
		}
	}
	if ref.path = strings.Trim(rest, "/ "); ref.path == "" {
		return ref, invalidf("%q names no playbook: give a path of the catalog", text)
	}
	return ref, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(strings.TrimPrefix(s, "v"))
	return err == nil
}

// readReference finds out what a word after noetl run means. A word with a
// separator or the extension of YAML is a file; another one is a file of that
// name with or without the extension; else, beside noetl.yaml or main.yaml, it
// is a step of that; and else it is a path of the catalog.
func readReference(text string, version int) (reference, error) {
	if text == "-" {
		return reference{file: text}, nil
	}
	if strings.HasPrefix(text, "catalog://") || strings.HasPrefix(text, "pbk_") {
		return catalogRef(text, version)
	}
	if isFile(text) || isYAML(text) {
		return reference{file: text}, nil
	}
	for _, ext := range []string{".yaml", ".yml"} {
		if isFile(text + ext) {
			return reference{file: text + ext}, nil
		}
	}
	if !strings.ContainsRune(text, '/') && !strings.ContainsRune(text, filepath.Separator) && !strings.Contains(text, "@") {
		for _, usual := range []string{"noetl.yaml", "main.yaml"} {
			if isFile(usual) {
				return reference{file: usual, target: text}, nil
			}
		}
	}
	if strings.HasPrefix(text, ".") || filepath.IsAbs(text) || strings.HasSuffix(text, string(os.PathSeparator)) {
		return reference{}, invalidf("%s: no such file", text)
	}
	return catalogRef(text, version)
}
