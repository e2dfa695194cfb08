package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const outside = "93.184.216.34"

// names is a resolver for tests.
func names(table map[string]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, text := range strings.Fields(table[strings.ToLower(strings.TrimSuffix(host, "."))]) {
			out = append(out, netip.MustParseAddr(text))
		}
		if out == nil {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return out, nil
	}
}

func TestPoliciesDecideByNameAddressAndPort(t *testing.T) {
	t.Parallel()
	resolve := names(map[string]string{
		"localhost": "127.0.0.1 ::1", "web.test": outside, "inner.test": "10.1.2.3", "mixed.test": outside + " 10.1.2.3",
		"sneaky.test": "169.254.169.254", "a.corp.test": "10.0.0.9", "metadata.google.internal": outside, "rebind.test": "::ffff:127.0.0.1",
	})
	local := egress.Settings{}
	public := egress.Settings{Profile: "public"}
	allowing := egress.Settings{Profile: "public", AllowHosts: []string{"localhost", "*.corp.test"}, AllowPrivate: []string{"10.1.0.0/16", "192.168.7.7"}}
	for name, tc := range map[string]struct {
		settings egress.Settings
		host     string
		denied   string // part of the reason; "" = allowed
	}{
		"local allows loopback":              {local, "localhost", ""},
		"local allows private":               {local, "192.168.1.1", ""},
		"local allows public":                {local, "web.test", ""},
		"public denies loopback":             {public, "localhost", "inside this network"},
		"public denies private by name":      {public, "inner.test", "inside this network"},
		"one bad address is enough":          {public, "mixed.test", "10.1.2.3"},
		"public allows public":               {public, "web.test", ""},
		"shared address space":               {public, "100.64.0.1", "inside"},
		"mapped IPv4":                        {public, "::ffff:10.0.0.1", "inside"},
		"mapped IPv4 from DNS":               {public, "rebind.test", "127.0.0.1"},
		"NAT64":                              {public, "64:ff9b::7f00:1", "inside"},
		"6to4":                               {public, "2002:7f00:1::", "inside"},
		"IPv4-compatible":                    {public, "::127.0.0.1", "inside"},
		"a zone does not hide":               {public, "fc00::1%eth0", "inside"},
		"a zone does not hide ::1":           {public, "::1%lo", "inside"},
		"unique local":                       {public, "fd12::1", "inside"},
		"a listed host may be inside":        {allowing, "localhost", ""},
		"so may hosts below a listed name":   {allowing, "a.corp.test", ""},
		"and with a closing dot":             {allowing, "A.Corp.test.", ""},
		"a listed range":                     {allowing, "10.1.200.1", ""},
		"a listed address":                   {allowing, "192.168.7.7", ""},
		"beside the listed":                  {allowing, "192.168.7.8", "inside"},
		"metadata by address":                {local, "169.254.169.254", "link-local"},
		"metadata by IPv6":                   {local, "fd00:ec2::254", "metadata"},
		"metadata mapped":                    {local, "::ffff:169.254.169.254", "link-local"},
		"metadata by NAT64":                  {local, "64:ff9b::a9fe:a9fe", "link-local"},
		"metadata with a zone":               {local, "fe80::1%eth0", "link-local"},
		"metadata by name":                   {local, "metadata.google.internal", "metadata"},
		"metadata by name with a dot":        {local, "Metadata.Google.Internal.", "metadata"},
		"metadata behind a name":             {local, "sneaky.test", "169.254.169.254"},
		"metadata in spite of a list":        {egress.Settings{AllowHosts: []string{"169.254.169.254"}, AllowPrivate: []string{"0.0.0.0/0"}}, "169.254.169.254", "link-local"},
		"unspecified":                        {local, "0.0.0.0", "not an address"},
		"unspecified IPv6":                   {local, "::", "not an address"},
		"multicast":                          {local, "224.0.0.1", "multicast"},
		"one decimal number":                 {local, "2130706433", "unusual notation"},
		"octal":                              {local, "0177.0.0.1", "unusual notation"},
		"hexadecimal":                        {local, "0x7f.0x1", "unusual notation"},
		"two parts":                          {local, "127.1", "unusual notation"},
		"a denied name":                      {egress.Settings{DenyHosts: []string{"*.corp.test"}}, "a.corp.test", "denied hosts"},
		"a denied range":                     {egress.Settings{DenyHosts: []string{"10.0.0.0/8"}}, "inner.test", "denied hosts"},
		"a denied address behind a name":     {egress.Settings{DenyHosts: []string{"10.1.2.3"}}, "inner.test", "denied hosts"},
		"denied wins over allowed":           {egress.Settings{Profile: "public", AllowHosts: []string{"inner.test"}, DenyHosts: []string{"inner.test"}}, "inner.test", "denied hosts"},
		"a port that is not among the ports": {egress.Settings{Ports: []string{"443"}}, "web.test", "port 80"},
		"a port that is":                     {egress.Settings{Ports: []string{"443", "80"}}, "web.test", ""},
		"no host":                            {local, "", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := egress.Parse(tc.settings)
			if err != nil {
				t.Fatal(err)
			}
			p.Resolve = resolve
			err = p.Check(t.Context(), tc.host, "80")
			if tc.denied == "" {
				if err != nil {
					t.Errorf("denied: %v", err)
				}
				return
			}
			d, ok := errors.AsType[*egress.Denied](err)
			if !ok || !errors.Is(err, egress.ErrDenied) {
				t.Fatalf("error %v is no denial", err)
			}
			if !strings.Contains(err.Error(), tc.denied) || d.Host != tc.host {
				t.Errorf("got %q for host %q", err, d.Host)
			}
		})
	}
}

func TestWrongSettingsNameThemselves(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]egress.Settings{
		"NOETL_EGRESS_PROFILE":       {Profile: "open"},
		"NOETL_EGRESS_ALLOW_HOSTS":   {AllowHosts: []string{"http://x"}},
		"NOETL_EGRESS_DENY_HOSTS":    {DenyHosts: []string{"10.0.0.0/99"}},
		"NOETL_EGRESS_ALLOW_PRIVATE": {AllowPrivate: []string{"ten"}},
		"NOETL_EGRESS_PORTS":         {Ports: []string{"0"}},
	} {
		if _, err := egress.Parse(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want a complaint about %s", s, err, want)
		}
	}
	for _, host := range []string{"", "*", "*.", "a b", "x:80", "a.*.b"} {
		if _, err := egress.Parse(egress.Settings{AllowHosts: []string{host}}); err == nil {
			t.Errorf("host %q is taken", host)
		}
	}
}

// The name changes its address between the check and the connection: what was
// checked is what is connected to.
func TestNamesAreResolvedOnce(t *testing.T) {
	t.Parallel()
	var lookups atomic.Int32
	var dialed atomic.Value
	p := &egress.Policy{
		Public: true,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			if lookups.Add(1) == 1 {
				return []netip.Addr{netip.MustParseAddr(outside)}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		Connect: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed.Store(address)
			a, b := net.Pipe()
			_ = b.Close()
			return a, nil
		},
	}
	conn, err := p.DialContext(t.Context(), "tcp", "rebind.test:80")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if got := dialed.Load(); got != outside+":80" || lookups.Load() != 1 {
		t.Errorf("connected to %v after %d lookups", got, lookups.Load())
	}
	if _, err := p.DialContext(t.Context(), "tcp", "rebind.test:80"); !errors.Is(err, egress.ErrDenied) {
		t.Errorf("the second time: %v", err)
	}
}

func TestOtherAddressesAreTriedInTurn(t *testing.T) {
	t.Parallel()
	var tried []string
	p := &egress.Policy{
		Resolve: names(map[string]string{"two.test": "::1 127.0.0.1"}),
		Connect: func(_ context.Context, _, address string) (net.Conn, error) {
			if tried = append(tried, address); len(tried) == 1 {
				return nil, errors.New("refused")
			}
			a, b := net.Pipe()
			_ = b.Close()
			return a, nil
		},
	}
	conn, err := p.DialContext(t.Context(), "tcp", "two.test:5432")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if strings.Join(tried, " ") != "[::1]:5432 127.0.0.1:5432" {
		t.Errorf("tried %q", tried)
	}
	if _, err := p.DialContext(t.Context(), "tcp4", "two.test:1"); err != nil || tried[len(tried)-1] != "127.0.0.1:1" {
		t.Errorf("tcp4 tried %q, %v", tried, err)
	}
}

// world is a web of named servers: each name has an address, and all of them
// are really the handler here.
type world struct {
	pool *egress.Pool
	srv  *httptest.Server
}

func newWorld(t *testing.T, settings egress.Settings, table map[string]string, h http.HandlerFunc) *world {
	t.Helper()
	srv := httptest.NewServer(h)
	p, err := egress.Parse(settings)
	if err != nil {
		t.Fatal(err)
	}
	p.Resolve = names(table)
	p.Connect = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}
	w := &world{egress.NewPool(p, egress.PoolOptions{}), srv}
	t.Cleanup(func() { _ = w.pool.Close(); srv.Close() })
	return w
}

func (w *world) get(t *testing.T, url string, header http.Header) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := w.pool.Client().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestAPublicServerCannotRedirectInside(t *testing.T) {
	t.Parallel()
	table := map[string]string{"public.test": outside, "other.test": "8.8.8.8", "inner.test": "10.0.0.1", "meta.test": "169.254.169.254"}
	h := func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, r.Host)
	}
	for name, settings := range map[string]egress.Settings{
		"local": {}, "public": {Profile: "public"}, "even when allowed": {Profile: "public", AllowPrivate: []string{"10.0.0.0/8"}, AllowHosts: []string{"inner.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings, table, h)
			// A connection that is already open to the inner host must not help.
			if got, err := w.get(t, "http://inner.test/", nil); name != "public" && (err != nil || got != "inner.test") {
				t.Fatalf("a direct request: %q, %v", got, err)
			}
			for _, url := range []string{
				"http://public.test/?to=http://inner.test/",
				"http://public.test/?to=http://127.0.0.1:1/",
				"http://public.test/?to=http://[::ffff:10.0.0.1]/",
				"http://public.test/?to=http%3A%2F%2Fother.test%2F%3Fto%3Dhttp%3A%2F%2Finner.test%2F",
				"http://public.test/?to=http://meta.test/",
				"http://public.test/?to=ftp://other.test/",
			} {
				if got, err := w.get(t, url, nil); !errors.Is(err, egress.ErrDenied) {
					t.Errorf("%s: %q, %v", url, got, err)
				}
			}
			if got, err := w.get(t, "http://public.test/?to=http://other.test/", nil); err != nil || got != "other.test" {
				t.Errorf("a redirect to another public host: %q, %v", got, err)
			}
			if got, err := w.get(t, "http://inner.test/?to=http://inner.test/x", nil); name != "public" && (err != nil || got != "inner.test") {
				t.Errorf("a redirect within: %q, %v", got, err)
			}
		})
	}
}

func TestCredentialsStayWithTheirHost(t *testing.T) {
	t.Parallel()
	h := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://other.test/show", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/show", http.StatusFound)
		case "/back":
			http.Redirect(w, r, "http://other.test/return", http.StatusFound)
		case "/return":
			http.Redirect(w, r, "http://public.test/show", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Header.Get("X-Api-Key"))
	}
	w := newWorld(t, egress.Settings{}, map[string]string{"public.test": outside, "other.test": "8.8.8.8"}, h)
	header := http.Header{"Authorization": {"A"}, "Cookie": {"C=1"}, "X-Api-Key": {"K"}}
	for path, want := range map[string]string{"/here": "AC=1K", "/away": "", "/back": ""} {
		if got, err := w.get(t, "http://public.test"+path, header); err != nil || got != want {
			t.Errorf("%s shows %q, want %q (%v)", path, got, want, err)
		}
	}
	if _, err := w.get(t, "http://public.test/loop", nil); !errors.Is(err, egress.ErrRedirects) {
		t.Errorf("a loop ends with %v", err)
	}
}

// counting counts the connections a server has at once.
type counting struct {
	net.Listener
	open, most atomic.Int32
}

type counted struct {
	net.Conn
	done func()
}

func (c *counted) Close() error { c.done(); return c.Conn.Close() }

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for n := c.open.Add(1); ; {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			break
		}
	}
	return &counted{conn, sync.OnceFunc(func() { c.open.Add(-1) })}, nil
}

func TestConnectionsAreBoundedOverAllHosts(t *testing.T) {
	t.Parallel()
	const bound = 8
	var listeners []*counting
	for range 3 {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		l := &counting{Listener: srv.Listener}
		srv.Listener = l
		srv.Start()
		t.Cleanup(srv.Close)
		listeners = append(listeners, l)
	}
	var dialed, most atomic.Int32
	p := &egress.Policy{Connect: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		for n := dialed.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		return &counted{conn, sync.OnceFunc(func() { dialed.Add(-1) })}, nil
	}}
	pool := egress.NewPool(p, egress.PoolOptions{MaxConnections: bound})
	defer pool.Close()
	var group sync.WaitGroup
	for i := range 300 {
		group.Go(func() {
			resp, err := pool.Client().Get("http://" + listeners[i%3].Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	group.Wait()
	if most.Load() > bound || most.Load() == 0 {
		t.Errorf("%d connections at once, the bound is %d", most.Load(), bound)
	}
}
