package cli

import (
	"github.com/noetl/noetl-go/internal/node"
)

// edgeFlags say how a server meets the network.
type edgeFlags struct {
	tlsFlags
	CORSOrigins     []string `name:"cors-origins" help:"Origins whose pages may call the API, such as https://app.example.com. Default: none but our own." env:"NOETL_CORS_ORIGINS" placeholder:"ORIGIN,…"`
	TrustedProxies  []string `help:"Addresses and ranges of proxies that may say for whom they call (X-Forwarded-For). Default: none." env:"NOETL_TRUSTED_PROXIES" placeholder:"RANGE,…"`
	OpenMetrics     bool     `help:"Show /metrics without a token." env:"NOETL_METRICS_OPEN"`
	PostgresExecute string   `help:"What /api/postgres/execute may do for admins: off, read or write." default:"off" env:"NOETL_POSTGRES_EXECUTE" placeholder:"MODE"`
	MaxConnections  int      `name:"max-connections-per-address" help:"Open connections of one address; 0 for no bound." default:"0" env:"NOETL_MAX_CONNECTIONS_PER_ADDRESS" placeholder:"N"`
}

var edgeSettings = []string{
	"NOETL_TLS_CERT", "NOETL_TLS_KEY", "NOETL_TLS_CLIENT_CA", "NOETL_CORS_ORIGINS", "NOETL_TRUSTED_PROXIES",
	"NOETL_METRICS_OPEN", "NOETL_POSTGRES_EXECUTE", "NOETL_MAX_CONNECTIONS_PER_ADDRESS",
}

func (f *edgeFlags) options() (node.Edge, error) {
	if err := refuseBlank(edgeSettings...); err != nil {
		return node.Edge{}, err
	}
	e := node.Edge{
		TLS: f.tlsFlags.options(), CORSOrigins: f.CORSOrigins, TrustedProxies: f.TrustedProxies, OpenMetrics: f.OpenMetrics,
		Console: f.PostgresExecute, MaxConnections: f.MaxConnections,
	}
	if err := e.Check(); err != nil {
		return e, invalidf("%v", err)
	}
	return e, nil
}
