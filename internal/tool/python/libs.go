package python

import (
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// readLibs reads the imports a step asks for. A list holds module names; a map
// holds name: module, or name: {from: module, import: attribute}.
func readLibs(f tool.Fields) ([][3]*string, error) {
	_, v, ok := f.First("libs")
	if !ok {
		return nil, nil
	}
	switch libs := v.(type) {
	case []any:
		return listLibs(libs)
	case map[string]any:
		return mapLibs(libs)
	}
	return nil, tool.ConfigErrorf("libs must be a list of modules or a map of names to modules")
}

func listLibs(items []any) (out [][3]*string, err error) {
	for _, item := range items {
		module, isText := item.(string)
		if !isText || !isModule(module) {
			return nil, tool.ConfigErrorf("libs: a list must hold module names")
		}
		out = append(out, plainImport(module, ""))
	}
	return out, nil
}

func mapLibs(libs map[string]any) (out [][3]*string, err error) {
	for _, name := range tool.SortedKeys(libs) {
		switch lib := libs[name].(type) {
		case nil:
			out = append(out, plainImport(name, ""))
		case string:
			if !isModule(lib) {
				return nil, tool.ConfigErrorf("libs.%s: %q is not a module name", name, lib)
			}
			if lib == name {
				name = ""
			}
			out = append(out, plainImport(lib, name))
		case map[string]any:
			imports, err := fromImports(name, lib)
			if err != nil {
				return nil, err
			}
			out = append(out, imports...)
		default:
			return nil, tool.ConfigErrorf("libs.%s must be a module name or {from: module, import: name}", name)
		}
	}
	return out, nil
}

// plainImport is "import module as name"; without a name the first part of the
// module is bound, as Python does.
func plainImport(module, name string) [3]*string {
	if name == "" {
		name, _, _ = strings.Cut(module, ".")
	}
	return [3]*string{&module, nil, &name}
}

// fromImports is "from module import attribute as name"; several attributes
// keep their own names.
func fromImports(name string, lib map[string]any) ([][3]*string, error) {
	f := tool.Fields(lib)
	module, err := f.String("from")
	if err != nil {
		return nil, err
	}
	if !isModule(module) {
		return nil, tool.ConfigErrorf("libs.%s needs from: a module name", name)
	}
	if list, isList := lib["import"].([]any); isList {
		var out [][3]*string
		for _, item := range list {
			attr, isText := item.(string)
			if !isText {
				return nil, tool.ConfigErrorf("libs.%s.import must hold names", name)
			}
			out = append(out, [3]*string{&module, &attr, &attr})
		}
		return out, nil
	}
	attr, err := f.String("import")
	if err != nil {
		return nil, err
	}
	if attr == "" {
		return [][3]*string{plainImport(module, name)}, nil
	}
	return [][3]*string{{&module, &attr, &name}}, nil
}

func isModule(name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\n;()'\"") && !strings.HasPrefix(name, ".")
}
