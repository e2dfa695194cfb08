// Package source loads the text of scripts that a playbook keeps elsewhere: in
// a file, at a web address or in a bucket. It must not know what a script is
// written in or what becomes of it.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

const (
	// MaxBytes is the size of the largest script.
	MaxBytes       = 4 << 20
	defaultTimeout = 30 * time.Second
)

// Loader loads scripts. It is safe for concurrent use.
type Loader struct {
	pool   *egress.Pool
	prover *outbound.Prover
}

// New makes a loader that reaches the network through pool.
func New(pool *egress.Pool) *Loader { return &Loader{pool: pool, prover: outbound.NewProver(pool)} }

var standard atomic.Pointer[Loader]

func init() { standard.Store(New(egress.NewPool(nil, egress.PoolOptions{}))) }

// SetDefault has Load use l: the one way for a process to bound where scripts
// come from.
func SetDefault(l *Loader) { standard.Store(l) }

// Load loads a script with the default loader, see Loader.Load.
func Load(ctx context.Context, call *tool.Call, script map[string]any) (string, error) {
	return standard.Load().Load(ctx, call, script)
}

// place is where a script is, read from its description.
type place struct {
	kind   string // inline, file, http, gcs, s3
	uri    string
	source tool.Fields
}

// Load gives the text of a script from its description: {uri, source: {type,
// code | path | endpoint | url, auth, method, headers, timeout}}. Without a
// type, the uri tells. Scripts are text of at most MaxBytes.
func (l *Loader) Load(ctx context.Context, call *tool.Call, script map[string]any) (string, error) {
	p, err := readPlace(script)
	if err != nil {
		return "", err
	}
	limit, err := p.source.Duration("timeout", "timeout_seconds")
	if err != nil {
		return "", err
	}
	if limit == 0 {
		limit = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, err := l.read(ctx, call, p, limit)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(text) {
		return "", &tool.Error{Kind: tool.KindParse, Code: "NOT_TEXT", Message: "the script is not text in UTF-8"}
	}
	return strings.TrimPrefix(string(text), "\ufeff"), nil
}

func (l *Loader) read(ctx context.Context, call *tool.Call, p *place, limit time.Duration) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, "load the script", limit)
	}
	switch p.kind {
	case "inline":
		code, err := p.source.String("code", "content")
		if err == nil && strings.TrimSpace(code) == "" {
			err = tool.ConfigErrorf("script.source of type inline needs code")
		}
		if err == nil && len(code) > MaxBytes {
			err = tooLarge("the script")
		}
		return []byte(code), err
	case "file":
		return readFile(p)
	case "http":
		return l.readHTTP(ctx, call, p, limit)
	}
	return l.readBucket(ctx, call, p, limit)
}

func readPlace(script map[string]any) (*place, error) {
	s := tool.Fields(script)
	uri, err := s.String("uri", "url")
	if err != nil {
		return nil, err
	}
	source, err := s.Object("source")
	if err != nil {
		return nil, err
	}
	p := &place{uri: strings.TrimSpace(uri), source: source}
	if p.kind, err = p.source.String("type"); err != nil {
		return nil, err
	}
	switch p.kind = strings.ToLower(p.kind); p.kind {
	case "":
		p.kind = p.guess()
	case "inline", "file", "http", "s3", "gcs":
	case "https":
		p.kind = "http"
	case "gs":
		p.kind = "gcs"
	default:
		return nil, tool.ConfigErrorf("script.source.type %q is not one of inline, file, http, gcs, s3", p.kind)
	}
	if p.kind == "" {
		return nil, tool.ConfigErrorf("script needs a uri, or a source with a type and what belongs to it")
	}
	return p, nil
}

func (p *place) guess() string {
	scheme, _, hasScheme := strings.Cut(p.uri, "://")
	switch _, _, coded := p.source.First("code", "content"); {
	case coded:
		return "inline"
	case p.uri == "":
		if _, _, ok := p.source.First("path"); ok {
			return "file"
		}
		if _, _, ok := p.source.First("url", "endpoint"); ok {
			return "http"
		}
		return ""
	case !hasScheme, scheme == "file":
		return "file"
	}
	switch scheme {
	case "http", "https":
		return "http"
	case "gs", "gcs":
		return "gcs"
	case "s3":
		return "s3"
	}
	return ""
}

// readFile reads a file; a path that is not absolute starts where the worker
// was started.
func readFile(p *place) ([]byte, error) {
	path, err := p.source.String("path", "file")
	if err != nil {
		return nil, err
	}
	if path == "" {
		path = strings.TrimPrefix(p.uri, "file://")
	}
	if path == "" {
		return nil, tool.ConfigErrorf("script.source of type file needs a path")
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, tool.ConfigErrorf("script file %s is not a file", path)
	}
	if err != nil {
		return nil, fileError(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	text, err := readAll(f, "script file "+path)
	if _, ok := errors.AsType[*tool.Error](err); err != nil && !ok {
		return nil, fileError(path, err)
	}
	return text, err
}

func fileError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &tool.Error{Kind: tool.KindNotFound, Code: "SCRIPT_NOT_FOUND", Message: fmt.Sprintf("script file %s does not exist on the worker", path)}
	}
	return &tool.Error{Kind: tool.KindStorageAccess, Code: "SCRIPT_UNREADABLE", Message: fmt.Sprintf("script file %s cannot be read: %v", path, errors.Unwrap(err))}
}

func readAll(r io.Reader, what string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(text) > MaxBytes {
		return nil, tooLarge(what)
	}
	return text, err
}

func tooLarge(what string) error {
	return &tool.Error{Kind: tool.KindResourceLimit, Code: "SCRIPT_TOO_LARGE", Message: fmt.Sprintf("%s is larger than %d MiB", what, MaxBytes>>20)}
}

// address is the web address of the script.
func (p *place) address() (*url.URL, error) {
	text, err := p.source.String("endpoint", "url")
	if err != nil {
		return nil, err
	}
	if text == "" {
		text = p.uri
	}
	if text == "" {
		return nil, tool.ConfigErrorf("script.source of type http needs an endpoint")
	}
	u, err := outbound.ParseURL("script.source.endpoint", text)
	if err != nil {
		return nil, err
	}
	// endpoint may be the server alone, with the uri as the path on it.
	if text != p.uri && p.uri != "" && !strings.Contains(p.uri, "://") && strings.Trim(u.Path, "/") == "" {
		u = u.JoinPath(p.uri)
	}
	return u, nil
}
