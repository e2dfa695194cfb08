package shell

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// exportsFile is where a command leaves its variables, in the private directory.
const (
	exportsFile     = ".noetl-exports"
	exportsVariable = "NOETL_EXPORTS_FILE"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	posixShells  = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}
)

// readExports reads the names of variables that the result is to show.
func (s *script) readExports(f tool.Fields) error {
	_, v, ok := f.First("exports")
	if !ok {
		return nil
	}
	list, isList := v.([]any)
	if text, isText := v.(string); isText {
		list, isList = []any{text}, true
	}
	if !isList {
		return tool.ConfigErrorf("exports must be a list of names of variables")
	}
	for _, item := range list {
		name, isText := item.(string)
		if !isText || !variableName.MatchString(name) {
			return tool.ConfigErrorf("exports: %v is not the name of a variable", item)
		}
		s.exports = append(s.exports, name)
	}
	if base := filepath.Base(s.shell); len(s.exports) > 0 && !slices.Contains(posixShells, base) {
		return tool.ConfigErrorf("exports needs one of the shells %s, not %s", strings.Join(posixShells, ", "), base)
	}
	return nil
}

// exporting is a command that leaves the variables it has set when it ends,
// however it ends. The lines of the command keep their numbers.
func (s *script) exporting(text string) string {
	if len(s.exports) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString("trap '{ ")
	for _, name := range s.exports {
		b.WriteString(`[ -z "${` + name + `+x}" ] || printf "%s=%s\\0" ` + name + ` "$` + name + `"; `)
	}
	b.WriteString(`} >"$` + exportsVariable + `"' EXIT; `)
	return b.String() + text
}

func (s *script) exportsPath() string { return filepath.Join(s.place.Dir, exportsFile) }

// collect takes what a command left; the next one finds it in its environment.
func (s *script) collect() {
	if len(s.exports) == 0 {
		return
	}
	text, err := os.ReadFile(s.exportsPath())
	if err != nil {
		return // a shell that was killed leaves nothing
	}
	for pair := range strings.SplitSeq(string(text), "\x00") {
		if name, v, ok := strings.Cut(pair, "="); ok {
			s.shown[name] = strings.ToValidUTF8(v, "\uFFFD")
		}
	}
}

// exported is what the result shows: null for what no command has set.
func (s *script) exported() map[string]any {
	if len(s.exports) == 0 {
		return nil
	}
	out := make(map[string]any, len(s.exports))
	for _, name := range s.exports {
		out[name] = nil
		if v, ok := s.shown[name]; ok {
			out[name] = v
		}
	}
	return out
}
