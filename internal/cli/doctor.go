package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/noetl/noetl-go/internal/doctor"
	"github.com/noetl/noetl-go/internal/node"
)

// doctorCommand takes the settings of a server, so that it looks at what a
// server with the same environment and flags would use.
type doctorCommand struct {
	Listen      string   `help:"Address of the API and page (NOETL_HOST and NOETL_PORT). Default 127.0.0.1:8082." placeholder:"HOST:PORT"`
	DataDir     string   `help:"Directory of the embedded database and NATS." default:".noetl" env:"NOETL_DATA_DIR" placeholder:"DIR"`
	DatabaseURL string   `help:"PostgreSQL instead of the embedded database." env:"NOETL_DATABASE_URL" placeholder:"URL"`
	NATSURL     string   `name:"nats-url" help:"NATS instead of the embedded one." env:"NATS_URL" placeholder:"URL"`
	PublicURL   string   `help:"How workers reach the server." env:"NOETL_PUBLIC_SERVER_URL" placeholder:"URL"`
	Insecure    bool     `help:"The server may listen beyond loopback without authentication." env:"NOETL_INSECURE"`
	Auth        string   `help:"How callers are known to the server: off, token or oidc." enum:"off,token,oidc" default:"off" env:"NOETL_AUTH" placeholder:"MODE"`
	Pools       []string `help:"Pools that some worker should serve, when a running server is asked." default:"shared" placeholder:"POOL,…"`
	secretFlags
	shardFlags
	tlsFlags
	serverFlags
	outputFlags
}

// Run makes the checks and shows what they found; the exit code is 1 when
// something fails.
func (c *doctorCommand) Run(ctx context.Context, env *Env) error {
	checks, err := c.checks()
	if err != nil {
		return err
	}
	report := doctor.Run(ctx, checks...)
	if c.machine() {
		err = c.print(env, report)
	} else {
		err = showDoctor(env, c.outputFlags, report)
	}
	if err == nil && !report.Healthy {
		return exit(ExitFailed)
	}
	return err
}

// checks are those of a server with these settings or, when one is named, of a
// running one.
func (c *doctorCommand) checks() ([]doctor.Check, error) {
	if c.Connection != nil && c.Connection.explicit() {
		cl, err := c.client()
		if err != nil {
			return nil, err
		}
		return []doctor.Check{doctor.Server{Remote: cl, URL: cl.URL(), Version: Version, Pools: c.Pools}}, nil
	}
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	checks := o.Checks()
	return append(checks,
		doctor.Port{Address: o.Listen, Proc: "/proc"},
		doctor.Exposure{Listen: o.Listen, Auth: c.Auth != "off", TLS: c.TLSCert != "", Insecure: c.Insecure},
		doctor.TLS{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA, Now: time.Now},
		doctor.PublicURL{URL: c.PublicURL},
		doctor.Directory{Path: c.DataDir, Disk: doctor.Disk, Database: c.DatabaseURL == ""},
		doctor.Python{Path: orEnv("PYTHON_PATH", "python3")},
		doctor.Jobs{Getenv: os.Getenv},
		doctor.Files{Limit: doctor.OpenFiles},
	), nil
}

func (c *doctorCommand) options() (node.Options, error) {
	if err := refuseBlank("NOETL_HOST", "NOETL_PORT", "NOETL_DATA_DIR", "NOETL_DATABASE_URL", "NATS_URL", "NOETL_PUBLIC_SERVER_URL", "NOETL_AUTH"); err != nil {
		return node.Options{}, err
	}
	listen := c.Listen
	if listen == "" {
		listen = net.JoinHostPort(orEnv("NOETL_HOST", "127.0.0.1"), orEnv("NOETL_PORT", "8082"))
	}
	secrets, err := c.secretFlags.options()
	if err != nil {
		return node.Options{}, err
	}
	databases, err := c.postgres()
	return node.Options{
		DataDir: c.DataDir, DatabaseURL: c.DatabaseURL, Postgres: databases, NATSURL: c.NATSURL, Listen: listen, Secrets: secrets,
	}, err
}

func showDoctor(env *Env, f outputFlags, r doctor.Report) error {
	t := newTable("STATUS", "CHECK", "WHAT", "WHERE", "REMEDY")
	for _, x := range r.Findings {
		t.add(x.Check, string(x.Level), x.Check, x.What, x.Where, x.Remedy)
	}
	if err := f.list(env, r, t); err != nil {
		return err
	}
	if f.form() != "table" {
		return nil
	}
	_, err := fmt.Fprintf(env.Stdout, "%s, %s\n", plural(r.Failures, "failure"), plural(r.Warnings, "warning"))
	return err
}
