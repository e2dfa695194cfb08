package node

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	natsbus "github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/doctor"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/sqlite"
)

// Checks are those of what a node with these options would stand on: keys,
// databases and broker. They change nothing, whether or not a node runs.
func (o Options) Checks() []doctor.Check {
	keys := o.keyCheck()
	databases := doctor.Databases{Inspect: o.inspectDatabases, Now: time.Now, Sealed: keys.Opens, Remedy: "see that the file can be read"}
	if o.usesPostgres() {
		databases.Remedy = "check the address, the password and that PostgreSQL takes connections from here"
	}
	broker := doctor.Broker{Now: time.Now}
	if o.NATSURL != "" {
		broker.Inspect = func(ctx context.Context) (bus.Inspection, error) {
			return natsbus.Inspect(ctx, natsbus.Options{URL: o.NATSURL}, DefaultPools())
		}
	}
	return []doctor.Check{keys, databases, broker}
}

func (o Options) keyCheck() doctor.Keys {
	k := doctor.Keys{Row: secret.CredentialRow, Where: "NOETL_ENCRYPTION_KEY"}
	if o.Secrets.Keys.Given() || o.usesPostgres() {
		k.Load = func() (doctor.Opener, error) { return envelope.Load(o.Secrets.Keys) }
		return k
	}
	k.Where = filepath.Join(o.DataDir, keyFile)
	k.Absent = func() bool { _, err := os.Stat(k.Where); return os.IsNotExist(err) }
	k.Load = func() (doctor.Opener, error) { return envelope.Load(EncryptionKeys{File: k.Where}) }
	return k
}

func (o Options) inspectDatabases(ctx context.Context) ([]store.Inspection, error) {
	if o.usesPostgres() {
		opts, err := o.postgresOptions()
		if err != nil {
			return nil, err
		}
		return postgres.Inspect(ctx, opts)
	}
	in, err := sqlite.Inspect(ctx, filepath.Join(o.DataDir, "noetl.db"))
	return []store.Inspection{in}, err
}
