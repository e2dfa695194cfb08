package node

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/noetl/noetl-go/internal/api"
)

// Edge is how the server meets the network.
type Edge struct {
	TLS            TLS
	CORSOrigins    []string // whose pages may call the API
	TrustedProxies []string // addresses and ranges that may say for whom they call
	OpenMetrics    bool     // metrics are shown without a token
	Console        string   // what SQL from outside may do: "" or off, read, write
	MaxConnections int      // open connections of one address; 0 = no bound
}

// Check finds mistakes in the settings.
func (e Edge) Check() error {
	for _, o := range e.CORSOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil || strings.Contains(o, "*") {
			return fmt.Errorf("NOETL_CORS_ORIGINS: %q is no origin: write each as https://host or https://host:port; there is no wildcard", o)
		}
	}
	if _, err := e.proxies(); err != nil {
		return err
	}
	if _, err := consoleMode(e.Console); err != nil {
		return err
	}
	if e.MaxConnections < 0 {
		return fmt.Errorf("NOETL_MAX_CONNECTIONS_PER_ADDRESS: want 0 for no bound, or a number of connections")
	}
	return e.TLS.Check()
}

func (e Edge) proxies() ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range e.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if a, bad := netip.ParseAddr(text); bad == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("NOETL_TRUSTED_PROXIES: %q is neither an address nor a range such as 10.0.0.0/8", text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// scheme is how the server is addressed.
func (e Edge) scheme() string {
	if e.TLS.used() {
		return "https://"
	}
	return "http://"
}

// guard adds to the options of the API what the edge decides.
func (n *Node) guard(o Options, a api.Options) (api.Options, error) {
	proxies, err := o.Edge.proxies()
	if err != nil {
		return a, err
	}
	a.AllowedOrigins, a.TrustedProxies, a.OpenMetrics = o.Edge.CORSOrigins, proxies, o.Edge.OpenMetrics
	if n.access != nil {
		a.Access = n.access
		a.LoginIssuer, a.LoginClient, a.BrowserLogin = n.access.SignIn()
	}
	mode, err := consoleMode(o.Edge.Console)
	if err != nil {
		return a, err
	}
	if mode != consoleOff {
		a.Console = &sqlConsole{secrets: n.secrets, write: mode == consoleWrite}
	}
	return a, nil
}

// secure bounds the connections of a listener and puts TLS in front of it, where
// the settings ask for it.
func (n *Node) secure(o Options, ln net.Listener) (net.Listener, error) {
	return o.Edge.TLS.listener(api.Bounded(ln, o.Edge.MaxConnections), o.Logger)
}
