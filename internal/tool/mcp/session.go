package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// session is a greeted server. It is closed when nobody uses it any more and
// it is not kept.
type session struct {
	client *sdk.ClientSession
	watch  *watch
	end    func() // closes it

	reused bool // for its present user: it was there before
	shared *kept
}

// kept is a session that calls share.
type kept struct {
	all    *sessions
	key    [sha256.Size]byte
	client *sdk.ClientSession
	watch  *watch
	users  int
	used   time.Time
	gone   bool // to be closed by its last user
}

// release gives the session back.
func (s *session) release() {
	switch {
	case s == nil:
	case s.shared != nil:
		s.shared.all.release(s.shared)
	case s.end != nil:
		s.end()
	}
}

// open finds a session with the server, or makes one.
func (t *Tool) open(ctx context.Context, call *tool.Call, r *request) (*session, error) {
	if r.url == nil {
		return startProgram(ctx, call, r)
	}
	key := r.key()
	if k := t.sessions.take(key); k != nil {
		return &session{client: k.client, watch: k.watch, reused: true, shared: k}, nil
	}
	w := &watch{request: r, next: t.pool.Transport(true)}
	client, err := r.newClient().Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: r.url.String(), DisableStandaloneSSE: true, MaxRetries: -1,
		HTTPClient: &http.Client{Transport: w, CheckRedirect: egress.WithSecrets(r.proof.Headers()...)},
	}, &sdk.ClientSessionOptions{ProtocolVersion: r.version})
	if err != nil {
		return &session{watch: w}, err
	}
	k := &kept{all: &t.sessions, key: key, client: client, watch: w, users: 1}
	t.sessions.keep(k)
	return &session{client: client, watch: w, shared: k}, nil
}

func (r *request) newClient() *sdk.Client {
	return sdk.NewClient(&r.client, &sdk.ClientOptions{Capabilities: r.offers})
}

// key tells sessions apart: by all that the server may decide on.
func (r *request) key() [sha256.Size]byte {
	var proof outbound.Proof
	if r.proof != nil {
		proof = *r.proof
	}
	b, _ := json.Marshal([]any{r.url.String(), r.header, proof.Header, proof.Query, r.version, r.client, r.offers})
	return sha256.Sum256(b)
}

// farewell is how long the end of a session may take.
const farewell = 2 * time.Second

// watch sends the requests of a session with its headers and its proof, and
// remembers what went wrong on the way.
type watch struct {
	request *request
	next    http.RoundTripper
	mu      sync.Mutex
	err     error
}

func (w *watch) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if req.Response == nil { // a redirect has what it may carry
		for name, values := range w.request.header {
			out.Header[name] = values
		}
		w.request.proof.Apply(out.Header, out.URL)
	}
	if req.Method == http.MethodDelete { // a farewell, which must not hold anybody up
		ctx, cancel := context.WithTimeout(req.Context(), farewell)
		defer cancel()
		out = out.WithContext(ctx)
	}
	resp, err := w.next.RoundTrip(out)
	var noted error
	if err != nil {
		noted = err
	} else if e := outbound.StatusError(w.request.what(), resp.StatusCode, resp.Header); e != nil && resp.StatusCode >= 400 {
		noted = e
		if resp.StatusCode == http.StatusUnauthorized {
			w.request.proof.Rejected()
		}
	}
	w.mu.Lock()
	w.err = noted
	w.mu.Unlock()
	return resp, err
}

func (w *watch) last() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// sessions are kept between calls: a bounded number, for a bounded time.
type sessions struct {
	mu     sync.Mutex
	held   map[[sha256.Size]byte]*kept
	closed bool
}

func (s *sessions) take(key [sha256.Size]byte) *kept {
	s.mu.Lock()
	k := s.held[key]
	if k != nil {
		k.users++
	}
	old := s.expired(time.Now().Add(-sessionIdle))
	s.mu.Unlock()
	end(old)
	return k
}

// keep adds a session that its maker uses. Another one of the same key, made
// at the same time, stays; this one then ends with its user.
func (s *sessions) keep(k *kept) {
	s.mu.Lock()
	var old []*kept
	if s.held == nil {
		s.held = map[[sha256.Size]byte]*kept{}
	}
	switch {
	case s.closed, s.held[k.key] != nil:
		k.gone = true
	default:
		s.held[k.key] = k
		if len(s.held) > maxSessions {
			old = s.oldest()
		}
	}
	s.mu.Unlock()
	end(old)
}

func (s *sessions) release(k *kept) {
	s.mu.Lock()
	k.users--
	k.used = time.Now()
	over := k.gone && k.users == 0
	s.mu.Unlock()
	if over {
		end([]*kept{k})
	}
}

// drop has a session end with its users.
func (s *sessions) drop(used *session) {
	k := used.shared
	if k == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.gone = true
	if s.held[k.key] == k {
		delete(s.held, k.key)
	}
}

// expired takes out sessions nobody used since; oldest takes out one.
func (s *sessions) expired(since time.Time) (old []*kept) {
	for key, k := range s.held {
		if k.users == 0 && k.used.Before(since) {
			delete(s.held, key)
			old = append(old, k)
		}
	}
	return old
}

func (s *sessions) oldest() []*kept {
	var first *kept
	for _, k := range s.held {
		if k.users == 0 && (first == nil || k.used.Before(first.used)) {
			first = k
		}
	}
	if first == nil {
		return nil
	}
	delete(s.held, first.key)
	return []*kept{first}
}

func (s *sessions) close() {
	s.mu.Lock()
	s.closed = true
	var idle []*kept
	for key, k := range s.held {
		delete(s.held, key)
		k.gone = true
		if k.users == 0 {
			idle = append(idle, k)
		}
	}
	s.mu.Unlock()
	end(idle)
}

func end(list []*kept) {
	for _, k := range list {
		_ = k.client.Close() // the server forgets it sooner or later anyway
	}
}

// startProgram starts a server as a program for one call. It ends with the
// call, and so does all it started.
func startProgram(ctx context.Context, call *tool.Call, r *request) (*session, error) {
	cmd := exec.CommandContext(ctx, r.command[0], r.command[1:]...)
	cmd.Env = tool.CleanEnviron(r.environ)
	cmd.Stderr = call.Log
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	client, err := r.newClient().Connect(ctx, &sdk.CommandTransport{Command: cmd, TerminateDuration: time.Second}, &sdk.ClientSessionOptions{ProtocolVersion: r.version})
	if err != nil {
		if cmd.Process == nil {
			return nil, tool.ConfigErrorf("mcp server %s cannot be started: %v", r.command[0], err)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return nil, err
	}
	return &session{client: client, end: func() {
		_ = client.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	}}, nil
}
