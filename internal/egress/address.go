package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// metadataNames are hosts that give the credentials of the machine to whoever
// asks from it.
var metadataNames = []string{
	"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
	"metadata.tencentyun.com", "metadata.platformequinix.com",
}

func isMetadataName(name string) bool { return slices.Contains(metadataNames, name) }

// metadataAddrs are the same by address, where it is not link-local.
var metadataAddrs = addrs("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")

// inside are the ranges that do not lead to the public network: private,
// shared, reserved and for documentation.
var inside = prefixes(
	"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::1/128", "fc00::/7", "fec0::/10", "100::/64", "2001:db8::/32",
)

func addrs(texts ...string) []netip.Addr {
	out := make([]netip.Addr, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParseAddr(t)
	}
	return out
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

func contains(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
}

func isPrivate(a netip.Addr) bool { return contains(inside, a) }

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
)

// neverAllowed says why no profile lets anybody connect to a; "" if one may.
func neverAllowed(a netip.Addr) string {
	switch {
	case slices.Contains(metadataAddrs, a):
		return "it is the metadata service of a cloud"
	case a.IsLinkLocalUnicast():
		return "it is link-local, where clouds have their metadata service"
	case a.IsMulticast(), a == broadcast:
		return "it is a multicast or broadcast address"
	case a.IsUnspecified(), thisNetwork.Contains(a):
		return "it is not an address of any host"
	}
	return ""
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
)

// meanings are the addresses that an address stands for: itself without a zone,
// as IPv4 where it is mapped, and the IPv4 address that a translation prefix
// carries.
func meanings(a netip.Addr) []netip.Addr {
	a = a.WithZone("").Unmap()
	out := []netip.Addr{a}
	b := a.As16()
	switch {
	case a.Is4():
	case nat64.Contains(a), compatible.Contains(a) && a != netip.IPv6Unspecified() && a != netip.IPv6Loopback():
		out = append(out, netip.AddrFrom4([4]byte(b[12:16])))
	case sixToFour.Contains(a):
		out = append(out, netip.AddrFrom4([4]byte(b[2:6])))
	}
	return out
}

// plainHost is a host as lists of hosts have it: lower case, without a closing
// dot, brackets or zone.
func plainHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.WithZone("").Unmap().String()
	}
	return host
}

func matchesHost(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if below, ok := strings.CutPrefix(pattern, "*."); ok {
			return strings.HasSuffix(name, "."+below)
		}
		return pattern == name
	})
}

// isOddAddress finds IPv4 addresses in the notations that some resolvers
// understand: one number, octal, hexadecimal, fewer than four parts.
func isOddAddress(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
