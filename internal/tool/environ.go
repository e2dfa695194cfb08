package tool

import "os"

// inherited are the only variables an action's process gets from the worker:
// what programs need to run, none of the worker's secrets.
var inherited = []string{
	"PATH", "HOME", "LANG", "TMPDIR",
	"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
}

// CleanEnviron is the environment for an action's process: the inherited few,
// any variables named in also, then extra, which wins.
func CleanEnviron(extra map[string]string, also ...string) []string {
	env := make([]string, 0, len(inherited)+len(also)+len(extra))
	for _, name := range append(inherited[:len(inherited):len(inherited)], also...) {
		if _, replaced := extra[name]; replaced {
			continue
		}
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range SortedKeys(extra) {
		env = append(env, name+"="+extra[name])
	}
	return env
}
