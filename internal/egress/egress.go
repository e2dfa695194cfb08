// Package egress decides where a worker may connect to on behalf of a playbook,
// and connects there. Names are resolved once, every address is checked, and
// the connection goes to an address that was checked. It must not know of
// tools, credentials or workflows.
package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Policy says where connections may go. The zero value, and nil, is the local
// profile: everything but what is denied always.
type Policy struct {
	// Public denies loopback and private ranges, as fits a worker that runs the
	// playbooks of strangers.
	Public bool
	// AllowHosts may be on loopback and private addresses in spite of Public. A
	// name, an address, or *.name for all names below it.
	AllowHosts []string
	// DenyHosts are never reached, whatever else is said: written as AllowHosts.
	DenyHosts []string
	// DenyRanges are addresses that are never reached.
	DenyRanges []netip.Prefix
	// AllowPrivate are ranges that may be reached in spite of Public.
	AllowPrivate []netip.Prefix
	// Ports that may be reached; none = all.
	Ports []uint16

	// Resolve finds the addresses of a name; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Connect dials an address that was checked; nil uses the network.
	Connect func(ctx context.Context, network, address string) (net.Conn, error)
}

// ErrDenied is what every denial is, see errors.Is.
var ErrDenied = errors.New("connection denied")

// Denied says which connection the policy refuses, and why.
type Denied struct {
	Host    string // as asked for
	Address string // the offending address; "" when the name alone decided
	Why     string
}

func (d *Denied) Error() string {
	if d.Address == "" || d.Address == d.Host {
		return "connections to " + d.Host + " are not allowed: " + d.Why
	}
	return "connections to " + d.Host + " (" + d.Address + ") are not allowed: " + d.Why
}

// Is makes a denial an ErrDenied.
func (*Denied) Is(target error) bool { return target == ErrDenied }

// origin tells what is known of who asked for a connection.
type origin int

const (
	asked      origin = iota // the author of the playbook
	redirected               // a public server, by a redirect
)

const dialTimeout = 30 * time.Second

// DialContext connects to host:port if the policy allows all addresses of the
// host. It fits http.Transport and the drivers of databases.
func (p *Policy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return p.dial(ctx, network, address, asked)
}

func (p *Policy) dial(ctx context.Context, network, address string, from origin) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addrs, err := p.check(ctx, network, host, port, from)
	if err != nil {
		return nil, err
	}
	return p.connect(ctx, network, addrs, port)
}

// Check tells whether a connection to host and port would be allowed, without
// making one. A name that cannot be resolved is an error of its own.
func (p *Policy) Check(ctx context.Context, host, port string) error {
	_, err := p.check(ctx, "tcp", host, port, asked)
	return err
}

func (p *Policy) check(ctx context.Context, network, host, port string, from origin) ([]netip.Addr, error) {
	if p == nil {
		p = &Policy{}
	}
	if err := p.checkName(host, port); err != nil {
		return nil, err
	}
	addrs, err := p.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if err := p.checkAddr(host, a, from); err != nil {
			return nil, err
		}
	}
	usable := slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool {
		return strings.HasSuffix(network, "4") && !a.Unmap().Is4() || strings.HasSuffix(network, "6") && a.Unmap().Is4()
	})
	if len(usable) == 0 {
		return nil, &net.DNSError{Err: "no suitable address", Name: host, IsNotFound: true}
	}
	return usable, nil
}

// connect tries the addresses in turn, each with its share of the time.
func (p *Policy) connect(ctx context.Context, network string, addrs []netip.Addr, port string) (net.Conn, error) {
	dial := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	if p != nil && p.Connect != nil {
		dial = p.Connect
	}
	var first error
	for i, a := range addrs {
		attempt, cancel := share(ctx, len(addrs)-i)
		conn, err := dial(attempt, network, net.JoinHostPort(a.String(), port))
		cancel()
		if err == nil {
			return &checked{Conn: conn, addr: a}, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

func share(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(parts))
}

// checked is a connection that remembers the address it was checked for.
type checked struct {
	net.Conn
	addr netip.Addr
}

func (p *Policy) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if p.Resolve != nil {
		return p.Resolve(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// checkName decides what needs no addresses.
func (p *Policy) checkName(host, port string) error {
	name := plainHost(host)
	deny := func(why string) error { return &Denied{Host: host, Why: why} }
	switch {
	case name == "":
		return deny("the host is empty")
	case isMetadataName(name):
		return deny("it is the metadata service of a cloud")
	case matchesHost(p.DenyHosts, name):
		return deny("it is on the list of denied hosts")
	case isOddAddress(name):
		return deny("it is an address in an unusual notation; write four decimal numbers")
	}
	if len(p.Ports) == 0 {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || !slices.Contains(p.Ports, uint16(n)) {
		return deny("port " + port + " is not among the allowed ones")
	}
	return nil
}

// checkAddr decides on one address, and on those it stands for.
func (p *Policy) checkAddr(host string, given netip.Addr, from origin) error {
	for _, a := range meanings(given) {
		deny := func(why string) error { return &Denied{Host: host, Address: a.String(), Why: why} }
		if why := neverAllowed(a); why != "" {
			return deny(why)
		}
		if contains(p.DenyRanges, a) || matchesHost(p.DenyHosts, a.String()) {
			return deny("it is on the list of denied hosts")
		}
		if !isPrivate(a) {
			continue
		}
		if from == redirected {
			return deny("a public server redirects to an address inside this network")
		}
		if p.Public && !contains(p.AllowPrivate, a) && !matchesHost(p.AllowHosts, plainHost(host)) {
			return deny("it is inside this network, and the worker may only reach public addresses and what it was allowed")
		}
	}
	return nil
}
