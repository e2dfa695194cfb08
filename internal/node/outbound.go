package node

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// EgressSettings say where tools may connect to.
type EgressSettings = egress.Settings

// Outbound bounds the connections that tools make. The zero value is a worker
// on a developer's machine.
type Outbound struct {
	Egress         EgressSettings
	MaxConnections int           // of HTTP, at once; 0 = 200
	IdlePerHost    int           // kept open; 0 = 50
	IdleTimeout    time.Duration // how long; 0 = 30 s
	RequestTimeout time.Duration // of an HTTP request that says nothing; 0 = 60 s
	MaxResponse    int64         // bytes of an HTTP answer held in memory; 0 = 32 MiB
	MaxDownload    int64         // bytes of an HTTP answer that is stored; 0 = 2 GiB
}

// Check finds mistakes in the settings, those of the environment included.
func (o Outbound) Check() error {
	if _, err := egress.Parse(o.Egress); err != nil {
		return err
	}
	return checkServers(os.Environ())
}

// open makes the pool of connections that all tools share.
func (o Outbound) open() (*egress.Pool, error) {
	policy, err := egress.Parse(o.Egress)
	if err != nil {
		return nil, err
	}
	if err := checkServers(os.Environ()); err != nil {
		return nil, err
	}
	return egress.NewPool(policy, egress.PoolOptions{MaxConnections: o.MaxConnections, IdlePerHost: o.IdlePerHost, IdleTimeout: o.IdleTimeout}), nil
}

// checkServers checks the settings that name MCP servers.
func checkServers(environ []string) error {
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if name != "NOETL_MCP_URL" && (!strings.HasPrefix(name, "NOETL_MCP_") || !strings.HasSuffix(name, "_ENDPOINT")) {
			continue
		}
		if strings.TrimSpace(value) == "" {
			return fmt.Errorf("%s is set but blank: give it a value or unset it", name)
		}
		if _, err := outbound.ParseURL(name, value); err != nil {
			return err
		}
	}
	return nil
}
