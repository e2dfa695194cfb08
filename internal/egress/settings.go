package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Settings are a policy as a deployment writes it.
type Settings struct {
	Profile      string   // NOETL_EGRESS_PROFILE: local (or "") or public
	AllowHosts   []string // NOETL_EGRESS_ALLOW_HOSTS
	DenyHosts    []string // NOETL_EGRESS_DENY_HOSTS: hosts, addresses and ranges
	AllowPrivate []string // NOETL_EGRESS_ALLOW_PRIVATE: addresses and ranges
	Ports        []string // NOETL_EGRESS_PORTS
}

// Parse makes the policy. Every mistake is an error that names the setting.
func Parse(s Settings) (*Policy, error) {
	p := &Policy{}
	switch s.Profile {
	case "", "local":
	case "public":
		p.Public = true
	default:
		return nil, fmt.Errorf("NOETL_EGRESS_PROFILE %q: want local or public", s.Profile)
	}
	for _, text := range s.AllowHosts {
		host, err := parseHost(text)
		if err != nil {
			return nil, fmt.Errorf("NOETL_EGRESS_ALLOW_HOSTS: %w", err)
		}
		p.AllowHosts = append(p.AllowHosts, host)
	}
	for _, text := range s.DenyHosts {
		if strings.Contains(text, "/") {
			r, err := parseRange(text)
			if err != nil {
				return nil, fmt.Errorf("NOETL_EGRESS_DENY_HOSTS: %w", err)
			}
			p.DenyRanges = append(p.DenyRanges, r)
			continue
		}
		host, err := parseHost(text)
		if err != nil {
			return nil, fmt.Errorf("NOETL_EGRESS_DENY_HOSTS: %w", err)
		}
		p.DenyHosts = append(p.DenyHosts, host)
	}
	for _, text := range s.AllowPrivate {
		r, err := parseRange(text)
		if err != nil {
			return nil, fmt.Errorf("NOETL_EGRESS_ALLOW_PRIVATE: %w", err)
		}
		p.AllowPrivate = append(p.AllowPrivate, r)
	}
	for _, text := range s.Ports {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("NOETL_EGRESS_PORTS: %q is no port; want numbers from 1 to 65535, separated by commas", text)
		}
		p.Ports = append(p.Ports, uint16(n))
	}
	return p, nil
}

func parseHost(text string) (string, error) {
	text = strings.TrimSpace(text)
	host := plainHost(text)
	rest := strings.TrimPrefix(host, "*.")
	_, notAddr := netip.ParseAddr(host)
	if rest == "" || strings.ContainsAny(rest, "*/@ ?#") || notAddr != nil && strings.Contains(rest, ":") {
		return "", fmt.Errorf("%q is no host; want a name, an address or *.name, without scheme and port", text)
	}
	return host, nil
}

func parseRange(text string) (netip.Prefix, error) {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	r, err := netip.ParsePrefix(text)
	if err != nil {
		return r, fmt.Errorf("%q is no range of addresses; want one such as 10.0.0.0/8", text)
	}
	if r.Addr().Is4In6() {
		return r, fmt.Errorf("%q is a range of mapped addresses; write it as IPv4", text)
	}
	return r.Masked(), nil
}
