package python

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
	"github.com/noetl/noetl-go/internal/tool/source"
)

const maxScript = 4 << 20

// program is a call's config, checked.
type program struct {
	code    string
	path    string       // directory of the script file; "" for other code
	libs    [][3]*string // module, attribute or nil, name
	returns []string     // keys the value must have
	sysPath []string     // directories to import from
	wants   wants
	wish    process.Wish
	place   *process.Place
}

// request is what a child gets: three JSON texts, the last empty when the
// code cannot see it.
type request struct{ head, args, variables []byte }

// frames is the request as it is written: in one piece when small, so that the
// child wakes up once, else without a copy.
func (r *request) frames() [][]byte {
	parts := [][]byte{r.head, r.args, r.variables}
	var sizes []byte
	total := 0
	for _, part := range parts {
		sizes = binary.BigEndian.AppendUint64(sizes, uint64(len(part)))
		total += len(part)
	}
	parts = append([][]byte{sizes}, parts...)
	if total > 64<<10 {
		return parts
	}
	return [][]byte{bytes.Join(parts, nil)}
}

func readProgram(ctx context.Context, call *tool.Call) (*program, error) {
	f := call.Fields()
	p := &program{}
	var err error
	if p.wish, err = readWish(ctx, call, f); err != nil {
		return nil, err
	}
	if err = p.readCode(ctx, call, f); err != nil {
		return nil, err
	}
	if err = p.readDeps(f); err != nil {
		return nil, err
	}
	if p.libs, err = readLibs(f); err != nil {
		return nil, err
	}
	return p, p.readAssert(f, call.Args)
}

// readWish reads what the code is to run in.
func readWish(ctx context.Context, call *tool.Call, f tool.Fields) (w process.Wish, err error) {
	if w.Cwd, err = f.String("cwd"); err != nil {
		return w, err
	}
	if w.Env, err = f.Texts("env"); err != nil {
		return w, err
	}
	if w.Resources, err = f.Object("resources"); err != nil {
		return w, err
	}
	if w.Files, err = f.Object("files"); err != nil {
		return w, err
	}
	if _, _, ok := f.First("auth", "credential"); ok {
		w.Logins, err = call.Logins(ctx, f)
	}
	return w, err
}

func (p *program) readCode(ctx context.Context, call *tool.Call, f tool.Fields) error {
	if name, v, ok := f.First("code"); ok {
		text, isText := v.(string)
		if !isText || strings.TrimSpace(text) == "" {
			return tool.ConfigErrorf("%s must be Python code as text", name)
		}
		p.code = text
		return nil
	}
	if name, _, ok := f.First("code_b64", "code_base64"); ok {
		text, err := f.String(name)
		if err != nil {
			return err
		}
		code, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return tool.ConfigErrorf("%s is not base64: %v", name, err)
		}
		p.code = string(code)
		return nil
	}
	if _, _, ok := f.First("script"); ok {
		return p.readScript(ctx, call, f)
	}
	return tool.ConfigErrorf("python needs code (or code_b64, or script)")
}

// readScript reads code that is kept elsewhere. A file is read here, because
// its directory is where it imports from.
func (p *program) readScript(ctx context.Context, call *tool.Call, f tool.Fields) (err error) {
	script, err := f.Object("script")
	if err != nil {
		return err
	}
	from, err := tool.Fields(script).Object("source")
	if err != nil {
		return err
	}
	kind, err := tool.Fields(from).String("type")
	if err != nil {
		return err
	}
	if kind == "file" {
		path, err := tool.Fields(from).String("path")
		if err == nil && path == "" {
			path, err = tool.Fields(script).String("uri")
		}
		if err != nil {
			return err
		}
		return p.readFile(path)
	}
	if p.code, err = source.Load(ctx, call, script); err != nil {
		return err
	}
	if strings.TrimSpace(p.code) == "" {
		return tool.ConfigErrorf("script: the code it stands for is empty")
	}
	return nil
}

func (p *program) readFile(path string) error {
	if path == "" {
		return tool.ConfigErrorf("script of type file needs source.path")
	}
	if p.wish.Cwd != "" && !filepath.IsAbs(path) {
		path = filepath.Join(p.wish.Cwd, path)
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return tool.ConfigErrorf("script %q is not a file on this worker", path)
	}
	if info.Size() > maxScript {
		return tool.ConfigErrorf("script %q is larger than 4 MiB", path)
	}
	code, err := os.ReadFile(path)
	if err != nil {
		return tool.ConfigErrorf("script %q cannot be read: %v", path, err)
	}
	p.code = string(code)
	p.path, err = filepath.Abs(filepath.Dir(path))
	if err != nil {
		return tool.ConfigErrorf("script %q has no absolute path: %v", path, err)
	}
	return nil
}

// readAssert checks what the step promises to be given and notes what it
// promises to return.
func (p *program) readAssert(f tool.Fields, args map[string]any) error {
	object, err := f.Object("assert")
	if err != nil {
		return err
	}
	expects, err := names(object, "expects")
	if err != nil {
		return err
	}
	for _, name := range expects {
		if _, ok := args[name]; !ok {
			have := strings.Join(tool.SortedKeys(args), ", ")
			return &tool.Error{
				Kind: tool.KindSchema, Code: "ASSERT_EXPECTS",
				Message: "assert.expects: the input has no " + name + " (it has: " + have + ")",
			}
		}
	}
	p.returns, err = names(object, "returns")
	return err
}

func names(object map[string]any, field string) ([]string, error) {
	var out []string
	list, ok := object[field].([]any)
	if !ok && object[field] != nil {
		return nil, tool.ConfigErrorf("assert.%s must be a list of names", field)
	}
	for _, item := range list {
		name, err := tool.Text(item)
		if err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, nil
}

// sees are words without which code cannot reach the variables. Most code has
// none of them, and the render context, which may be large, is not sent.
var sees = regexp.MustCompile(`\b(variables|context|main|__main__|globals|locals|vars|eval|exec|data)\b`)

func (p *program) request(call *tool.Call, sandbox string) (*request, error) {
	limits := p.place.Limits
	head, err := tool.Encode(map[string]any{
		"code": p.code, "path": p.path, "cwd": p.place.Cwd, "own_cwd": p.wish.Cwd != "", "env": p.place.Env, "libs": p.libs,
		"sys_path": p.sysPath, "files": p.place.Files, "returns": p.returns,
		"limits":  map[string]any{"memory": limits.Memory, "cpu": limits.CPUSeconds(), "file": limits.Disk},
		"sandbox": sandbox, "step": call.Step, "execution_id": call.ExecutionID, "server_url": call.ServerURL,
	})
	if err != nil {
		return nil, err
	}
	args, err := appendValue(nil, argsOf(call.Args))
	if err != nil {
		return nil, tool.ConfigErrorf("input cannot be given to Python: %v", err)
	}
	r := &request{head: head, args: args}
	if sees.MatchString(p.code) {
		r.variables = call.Variables
	}
	return r, nil
}

func argsOf(args map[string]any) map[string]any {
	if args == nil {
		return map[string]any{}
	}
	return args
}
