package cli

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/client"
)

// defaultServer is where a server listens that was told nothing.
const defaultServer = "http://127.0.0.1:8082"

// connectionFlags say which server commands talk to and as whom; they may stand
// before or after the command. A flag wins over the environment, that over the
// context, and that over the default.
type connectionFlags struct {
	Context      string `help:"Context to use instead of the current one (NOETL_CONTEXT)." placeholder:"NAME" group:"connection"`
	ServerURL    string `help:"Server to talk to (NOETL_SERVER_URL). Default: that of the context, or http://127.0.0.1:8082." placeholder:"URL" group:"connection"`
	Host         string `help:"Host of the server, when its URL is not given." placeholder:"HOST" group:"connection" hidden:""`
	Port         int    `short:"p" help:"Port of the server, when its URL is not given." placeholder:"N" group:"connection" hidden:""`
	Token        string `help:"Token to be known by (NOETL_TOKEN); @FILE reads a file, which keeps it off the command line." placeholder:"TOKEN" group:"connection"`
	SessionToken string `help:"Token of a session (NOETL_SESSION_TOKEN)." placeholder:"TOKEN" group:"connection" hidden:""`
	Gateway      bool   `help:"Talk to a gateway, which serves the API below /noetl." group:"connection" hidden:""`
}

// connection is where and as whom a command talks to a server.
type connection struct {
	flags connectionFlags
	env   *Env
}

// serverFlags make a command one that talks to a server. The flags themselves
// are those of the program as a whole.
type serverFlags struct {
	Connection *connection `kong:"-"`
}

func (f serverFlags) client() (*client.Client, error) { return f.Connection.client("") }

// internalClient presents the internal token, when the environment has one:
// some routes serve nobody else.
func (f serverFlags) internalClient() (*client.Client, error) {
	return f.Connection.client(internalToken())
}

// bind gives the connection to the command that was chosen.
func bind(command reflect.Value, c *connection) {
	for command.Kind() == reflect.Pointer {
		command = command.Elem()
	}
	if command.Kind() != reflect.Struct {
		return
	}
	for i := range command.NumField() {
		field := command.Field(i)
		switch {
		case field.Type() == reflect.TypeFor[serverFlags]() && command.Type().Field(i).Anonymous:
			field.FieldByName("Connection").Set(reflect.ValueOf(c))
		case command.Type().Field(i).Anonymous:
			bind(field, c)
		}
	}
}

// target is a server and the evidence that is shown to it.
type target struct {
	url                    string
	context                string // the context that was used; "" for none
	token, session         string
	tlsCA, tlsCert, tlsKey string
	gateway                bool
	runtime                string
}

// explicit tells whether the command line itself names a server.
func (c *connection) explicit() bool {
	return c.flags.ServerURL != "" || c.flags.Host != "" || c.flags.Port != 0 || c.flags.Context != ""
}

// service is the server of a process that serves it for long: a worker does not
// follow whatever context somebody chooses at a terminal.
func (c *connection) service() (string, error) {
	if err := refuseBlank("NOETL_SERVER_URL"); err != nil {
		return "", err
	}
	given, err := c.address()
	return orText(given, defaultServer), err
}

// target joins flags, environment, context and default. What a context keeps to
// be known by goes to the server of that context only.
func (c *connection) target() (target, error) {
	t := target{url: defaultServer, gateway: c.flags.Gateway, runtime: "auto"}
	if err := refuseBlank("NOETL_SERVER_URL", "NOETL_TOKEN", "NOETL_SESSION_TOKEN", "NOETL_CONTEXT"); err != nil {
		return t, err
	}
	cfg, err := readConfig(c.env)
	if err != nil {
		return t, err
	}
	name := orEnvWhenBlank(c.flags.Context, "NOETL_CONTEXT")
	p, err := cfg.find(name)
	if err != nil {
		return t, err
	}
	given, err := c.address()
	if err != nil {
		return t, err
	}
	if p != nil {
		if t.context = name; name == "" {
			t.context = cfg.Current
		}
		t.runtime = orText(p.Runtime, "auto")
		if p.ServerURL != "" {
			t.url = p.ServerURL
		}
		if given == "" || sameServer(given, t.url) {
			t.token, t.session = p.Token, p.Session
			t.tlsCA, t.tlsCert, t.tlsKey = p.TLSCA, p.TLSCert, p.TLSKey
		}
	}
	t.url = orText(given, t.url)
	return t, c.evidence(&t)
}

// evidence lays flags and environment over what the context has.
func (c *connection) evidence(t *target) error {
	token, err := readSecret(orEnvWhenBlank(c.flags.Token, "NOETL_TOKEN"))
	if err != nil {
		return err
	}
	session, err := readSecret(orEnvWhenBlank(c.flags.SessionToken, "NOETL_SESSION_TOKEN"))
	if err != nil {
		return err
	}
	if token != "" || session != "" {
		t.token, t.session = token, session
	}
	t.tlsCA = orEnvWhenBlank("", "NOETL_TLS_CA", t.tlsCA)
	if cert := os.Getenv("NOETL_TLS_CLIENT_CERT"); cert != "" {
		t.tlsCert, t.tlsKey = cert, os.Getenv("NOETL_TLS_CLIENT_KEY")
	}
	return nil
}

// address is what flags and environment say of the server; "" for nothing.
func (c *connection) address() (string, error) {
	f := c.flags
	if f.ServerURL != "" && (f.Host != "" || f.Port != 0) {
		return "", invalidf("--server-url says it all: leave out --host and --port")
	}
	if f.ServerURL == "" && (f.Host != "" || f.Port != 0) {
		if f.Port < 0 || f.Port > 65535 {
			return "", invalidf("--port %d: want a number from 1 to 65535", f.Port)
		}
		port := f.Port
		if port == 0 {
			port = 8082
		}
		return "http://" + net.JoinHostPort(orText(f.Host, "127.0.0.1"), strconv.Itoa(port)), nil
	}
	return orEnvWhenBlank(f.ServerURL, "NOETL_SERVER_URL"), nil
}

// client connects to the target; bearer replaces its token unless it is "".
func (c *connection) client(bearer string, more ...client.Option) (*client.Client, error) {
	t, err := c.target()
	if err != nil {
		return nil, err
	}
	if bearer != "" {
		t.token, t.session = bearer, ""
	}
	return t.client(more...)
}

func (t target) client(more ...client.Option) (*client.Client, error) {
	carrier, err := t.transport()
	if err != nil {
		return nil, err
	}
	options := []client.Option{
		client.WithHTTPClient(&http.Client{Transport: carrier}), client.WithToken(t.token), client.WithUserAgent("noetl/" + Version),
	}
	return client.New(t.url, append(options, more...)...)
}

// transport dials the server the way the target asks for.
func (t target) transport() (http.RoundTripper, error) {
	config, err := clientTLS(t.tlsCA, t.tlsCert, t.tlsKey)
	if err != nil {
		return nil, err
	}
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true, TLSClientConfig: config,
	}
	return &carrier{base: base, session: t.session, gateway: t.gateway}, nil
}

// carrier adds to requests what the client does not know of.
type carrier struct {
	base    *http.Transport
	session string
	gateway bool
}

// RoundTrip implements http.RoundTripper.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.session != "" || c.gateway {
		r = r.Clone(r.Context())
	}
	if c.session != "" {
		r.Header.Set("X-Session-Token", c.session)
		r.Header.Del("Authorization")
	}
	if c.gateway {
		r.URL.Path = strings.Replace(r.URL.Path, "/api/", "/noetl/", 1)
		r.URL.RawPath = strings.Replace(r.URL.RawPath, "/api/", "/noetl/", 1)
	}
	return c.base.RoundTrip(r)
}

// CloseIdleConnections lets the client drop what it no longer needs.
func (c *carrier) CloseIdleConnections() { c.base.CloseIdleConnections() }

// readSecret is a value, or the content of a file that @ points to.
func readSecret(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "@")
	if !ok {
		return text, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", invalidf("read the token: %v", err)
	}
	if strings.TrimSpace(string(b)) == "" {
		return "", invalidf("read the token: %s is empty", name)
	}
	return strings.TrimSpace(string(b)), nil
}

// sameServer tells whether two addresses name one server.
func sameServer(a, b string) bool {
	one, errOne := url.Parse(strings.TrimRight(a, "/"))
	other, errOther := url.Parse(strings.TrimRight(b, "/"))
	return errOne == nil && errOther == nil && one.Scheme == other.Scheme && strings.EqualFold(one.Host, other.Host) && one.Path == other.Path
}

// orEnvWhenBlank is the value, or that of a variable, or a fallback.
func orEnvWhenBlank(v, name string, fallback ...string) string {
	if v != "" {
		return v
	}
	if v = os.Getenv(name); v == "" && len(fallback) > 0 {
		return fallback[0]
	}
	return v
}

func orText(v, fallback string) string {
	if v == "" {
		return fallback
	}
	return v
}

// String says which server and context that is, for people.
func (t target) String() string {
	if t.context == "" {
		return t.url
	}
	return fmt.Sprintf("%s (context %s)", t.url, t.context)
}
