package cli

import (
	"time"

	"github.com/noetl/noetl-go/internal/node"
)

// outboundFlags say where the tools of a worker may connect to, and how much.
type outboundFlags struct {
	EgressProfile      string   `help:"Where tools may connect to: local (anywhere but metadata services), or public (loopback and private networks only as allowed)." enum:"local,public" default:"local" env:"NOETL_EGRESS_PROFILE" placeholder:"PROFILE"`
	EgressAllowHosts   []string `help:"Hosts that may be on private addresses in spite of the public profile; *.NAME for all below a name." env:"NOETL_EGRESS_ALLOW_HOSTS" placeholder:"HOST,…"`
	EgressDenyHosts    []string `help:"Hosts, addresses and ranges that tools never reach." env:"NOETL_EGRESS_DENY_HOSTS" placeholder:"HOST,…"`
	EgressAllowPrivate []string `help:"Private ranges that may be reached in spite of the public profile." env:"NOETL_EGRESS_ALLOW_PRIVATE" placeholder:"RANGE,…"`
	EgressPorts        []string `help:"The only ports that tools may connect to. Default: all." env:"NOETL_EGRESS_PORTS" placeholder:"PORT,…"`

	HTTPMaxConnections   int           `name:"http-max-connections" help:"HTTP connections of tools at once." default:"200" env:"NOETL_HTTP_MAX_CONNECTIONS" placeholder:"N"`
	HTTPIdlePerHost      int           `name:"http-idle-per-host" help:"HTTP connections kept open to one host." default:"50" env:"NOETL_HTTP_IDLE_PER_HOST" placeholder:"N"`
	HTTPIdleTimeout      time.Duration `name:"http-idle-timeout" help:"How long an HTTP connection is kept open." default:"30s" env:"NOETL_HTTP_IDLE_TIMEOUT" placeholder:"DURATION"`
	HTTPTimeout          time.Duration `name:"http-timeout" help:"Time of an HTTP request that does not say." default:"60s" env:"NOETL_HTTP_TIMEOUT" placeholder:"DURATION"`
	HTTPMaxResponseBytes int64         `name:"http-max-response-bytes" help:"Largest HTTP answer held in memory; larger ones are stored." default:"33554432" env:"NOETL_HTTP_MAX_RESPONSE_BYTES" placeholder:"N"`
	HTTPMaxDownloadBytes int64         `name:"http-max-download-bytes" help:"Largest HTTP answer that is stored." default:"2147483648" env:"NOETL_HTTP_MAX_DOWNLOAD_BYTES" placeholder:"N"`
}

// outboundSettings are those a deployment must not set to nothing.
var outboundSettings = []string{
	"NOETL_EGRESS_PROFILE", "NOETL_EGRESS_ALLOW_HOSTS", "NOETL_EGRESS_DENY_HOSTS", "NOETL_EGRESS_ALLOW_PRIVATE", "NOETL_EGRESS_PORTS",
	"NOETL_HTTP_MAX_CONNECTIONS", "NOETL_HTTP_IDLE_PER_HOST", "NOETL_HTTP_IDLE_TIMEOUT", "NOETL_HTTP_TIMEOUT",
	"NOETL_HTTP_MAX_RESPONSE_BYTES", "NOETL_HTTP_MAX_DOWNLOAD_BYTES",
}

func (f *outboundFlags) options() (node.Outbound, error) {
	o := node.Outbound{
		Egress: node.EgressSettings{
			Profile: f.EgressProfile, AllowHosts: f.EgressAllowHosts, DenyHosts: f.EgressDenyHosts,
			AllowPrivate: f.EgressAllowPrivate, Ports: f.EgressPorts,
		},
		MaxConnections: f.HTTPMaxConnections, IdlePerHost: f.HTTPIdlePerHost, IdleTimeout: f.HTTPIdleTimeout,
		RequestTimeout: f.HTTPTimeout, MaxResponse: f.HTTPMaxResponseBytes, MaxDownload: f.HTTPMaxDownloadBytes,
	}
	if err := refuseBlank(outboundSettings...); err != nil {
		return o, err
	}
	switch {
	case f.HTTPMaxConnections < 1 || f.HTTPMaxConnections > 100_000:
		return o, invalidf("--http-max-connections %d (NOETL_HTTP_MAX_CONNECTIONS): want 1 to 100000", f.HTTPMaxConnections)
	case f.HTTPIdlePerHost < 1:
		return o, invalidf("--http-idle-per-host %d (NOETL_HTTP_IDLE_PER_HOST): want a number from 1", f.HTTPIdlePerHost)
	case f.HTTPIdleTimeout <= 0:
		return o, invalidf("--http-idle-timeout %s (NOETL_HTTP_IDLE_TIMEOUT): want more than 0", f.HTTPIdleTimeout)
	case f.HTTPTimeout <= 0:
		return o, invalidf("--http-timeout %s (NOETL_HTTP_TIMEOUT): want more than 0", f.HTTPTimeout)
	case f.HTTPMaxResponseBytes < 1:
		return o, invalidf("--http-max-response-bytes %d (NOETL_HTTP_MAX_RESPONSE_BYTES): want a number from 1", f.HTTPMaxResponseBytes)
	case f.HTTPMaxDownloadBytes < f.HTTPMaxResponseBytes:
		return o, invalidf("--http-max-download-bytes %d (NOETL_HTTP_MAX_DOWNLOAD_BYTES): want at least what is held in memory, %d", f.HTTPMaxDownloadBytes, f.HTTPMaxResponseBytes)
	}
	if err := o.Check(); err != nil {
		return o, invalidf("%v", err)
	}
	return o, nil
}
