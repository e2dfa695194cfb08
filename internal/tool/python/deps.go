package python

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// readDeps reads what a step asks of its interpreter beside `python`: packages
// as a list or text, or {packages, sys_path, venv_path}.
func (p *program) readDeps(f tool.Fields) error {
	python, err := f.String("python")
	if err != nil {
		return err
	}
	p.wants.python = python
	_, v, ok := f.First("deps")
	if !ok {
		return nil
	}
	deps, isMap := v.(map[string]any)
	if !isMap {
		p.wants.specs, err = readSpecs("deps", v)
		return err
	}
	for _, name := range tool.SortedKeys(deps) {
		switch name {
		case "packages":
			p.wants.specs, err = readSpecs("deps.packages", deps[name])
		case "sys_path":
			p.sysPath, err = readSysPath(deps[name])
		case "venv_path":
			err = p.readVenvPath(deps[name])
		default:
			err = tool.ConfigErrorf("deps.%s is not known; there are packages, sys_path and venv_path", name)
		}
		if err != nil {
			return err
		}
	}
	if len(p.wants.specs) > 0 && deps["venv_path"] != nil {
		return tool.ConfigErrorf("deps has packages and venv_path: packages go into an environment of their own; name them, or the environment, not both")
	}
	return nil
}

// readSpecs reads requirements as pip understands them: a list, text with one
// on each line, or lists by some name that says for whom they are.
func readSpecs(field string, v any) ([]string, error) {
	var out []string
	switch v := v.(type) {
	case nil:
	case string:
		for line := range strings.Lines(v) {
			if line, _, _ = strings.Cut(line, " #"); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				out = append(out, strings.TrimSpace(line))
			}
		}
	case []any:
		for _, item := range v {
			text, isText := item.(string)
			if !isText {
				return nil, tool.ConfigErrorf("%s must hold requirements such as httpx>=0.27, as text", field)
			}
			out = append(out, strings.TrimSpace(text))
		}
	case map[string]any:
		for _, name := range tool.SortedKeys(v) {
			more, err := readSpecs(field+"."+name, v[name])
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	default:
		return nil, tool.ConfigErrorf("%s must be a list of requirements such as httpx>=0.27", field)
	}
	for _, spec := range out {
		if spec == "" || strings.HasPrefix(spec, "-") || strings.ContainsAny(spec, "\n\r\x00") {
			return nil, tool.ConfigErrorf("%s: %q is not a requirement; write name, name==version or name @ url, no options", field, spec)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func readSysPath(v any) ([]string, error) {
	list, isList := v.([]any)
	if text, isText := v.(string); isText {
		list, isList = []any{text}, true
	}
	if !isList {
		return nil, tool.ConfigErrorf("deps.sys_path must be a list of directories")
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		dir, _ := item.(string)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, tool.ConfigErrorf("deps.sys_path: %q is not a directory on this worker", dir)
		}
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, tool.ConfigErrorf("deps.sys_path: %v", err)
		}
		out = append(out, path)
	}
	return out, nil
}

func (p *program) readVenvPath(v any) error {
	dir, isText := v.(string)
	if !isText || dir == "" {
		return tool.ConfigErrorf("deps.venv_path must be a directory")
	}
	if p.wants.python != "" {
		return tool.ConfigErrorf("deps.venv_path has an interpreter of its own; leave out python")
	}
	path, err := filepath.Abs(filepath.Join(dir, "bin", "python"))
	if err != nil {
		return tool.ConfigErrorf("deps.venv_path: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		return tool.ConfigErrorf("deps.venv_path: %q holds no virtual environment on this worker (no bin/python)", dir)
	}
	p.wants.python = path
	return nil
}

func joinSpecs(specs []string) string { return strings.Join(specs, "\n") }
