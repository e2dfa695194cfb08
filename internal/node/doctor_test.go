package node_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/doctor"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

// diagnosed finds a finding of a level whose text has the words.
func diagnosed(t *testing.T, o node.Options, level doctor.Level, words string) {
	t.Helper()
	r := doctor.Run(t.Context(), o.Checks()...)
	for _, f := range r.Findings {
		if f.Level == level && strings.Contains(f.What, words) {
			return
		}
	}
	t.Errorf("no %s with %q in %+v", level, words, r.Findings)
}

const (
	oneKey     = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	anotherKey = "HxwdHhsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="
)

func TestDoctorOnPostgres(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	o := node.Options{DatabaseURL: dsn, DataDir: t.TempDir(), Secrets: node.Secrets{Keys: node.EncryptionKeys{Key: oneKey}}}
	diagnosed(t, o, doctor.OK, "it is empty")
	n, err := node.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.PutCredential(t.Context(), "api", "bearer", json.RawMessage(`{"token":"x"}`)); err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	if r := doctor.Run(t.Context(), o.Checks()...); !r.Healthy || r.Warnings > 0 {
		t.Errorf("%+v", r.Findings)
	}
	diagnosed(t, o, doctor.OK, "1 stored credential opened")
	other := o
	other.Secrets.Keys.Key = anotherKey
	diagnosed(t, other, doctor.Fail, "1 of 1 stored credential cannot be opened with this key: api")
	other.Secrets.Keys.Key = ""
	if r := doctor.Run(t.Context(), other.Checks()...); r.Healthy {
		t.Errorf("a server without a key would not start, and the doctor is content: %+v", r.Findings)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var database string
	if err := conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	role := "r_" + database
	do("CREATE ROLE " + role + " LOGIN PASSWORD 'pw'")
	defer func() { do("DROP OWNED BY " + role + "; DROP ROLE " + role) }()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "pw")
	restricted := o
	restricted.DatabaseURL = u.String()
	diagnosed(t, restricted, doctor.Fail, "USAGE on schema noetl")
	do("GRANT USAGE ON SCHEMA noetl TO " + role + "; GRANT SELECT ON ALL TABLES IN SCHEMA noetl TO " + role)
	diagnosed(t, restricted, doctor.Fail, "CREATE on schema noetl")
	diagnosed(t, restricted, doctor.Warn, "belong to another role")

	do("DELETE FROM noetl.schema_migrations WHERE version = (SELECT max(version) FROM noetl.schema_migrations)")
	diagnosed(t, o, doctor.Warn, "1 migration is pending")
	do("INSERT INTO noetl.schema_migrations (version, name, checksum) VALUES (999, 'future', 'x')")
	diagnosed(t, o, doctor.Fail, "schema version 999")
	o.DatabaseURL = "postgres://u:secret-word@127.0.0.1:1/x?connect_timeout=2"
	r := doctor.Run(t.Context(), o.Checks()...)
	if raw, _ := json.Marshal(r); r.Healthy || strings.Contains(string(raw), "secret-word") {
		t.Errorf("%s", raw)
	}
}

func TestDoctorOnSQLite(t *testing.T) {
	t.Parallel()
	o := node.Options{DataDir: t.TempDir()}
	diagnosed(t, o, doctor.OK, "there is no key yet")
	n, err := node.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := n.PutCredential(t.Context(), "api", "bearer", json.RawMessage(`{"token":"x"}`)); err != nil {
		t.Fatal(err)
	}
	diagnosed(t, o, doctor.OK, "1 stored credential opened") // beside the server that holds the file
	o.Secrets.Keys.Key = anotherKey
	diagnosed(t, o, doctor.Fail, "cannot be opened with this key: api")
	o.Secrets.Keys.Key = "not a key"
	if r := doctor.Run(t.Context(), o.Checks()...); r.Healthy {
		t.Errorf("%+v", r.Findings)
	}
}

func TestDoctorOnNATS(t *testing.T) {
	t.Parallel()
	broker := testkit.NATSProcess(t)
	o := node.Options{DataDir: t.TempDir(), NATSURL: broker}
	diagnosed(t, o, doctor.OK, "streams that the first server makes: NOETL_COMMANDS")
	conn, err := natsgo.Connect(broker)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "NOETL_COMMANDS", Subjects: []string{"noetl.commands.>"}, Retention: jetstream.WorkQueuePolicy}); err != nil {
		t.Fatal(err)
	}
	diagnosed(t, o, doctor.Fail, "retention is WorkQueue, must be Limits")
	diagnosed(t, o, doctor.OK, "the clock of the broker agrees")
	if err := js.DeleteStream(t.Context(), "NOETL_COMMANDS"); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	diagnosed(t, o, doctor.OK, "streams and consumers are as they must be")
	o.NATSURL = "nats://u:secret-word@127.0.0.1:1"
	r := doctor.Run(t.Context(), o.Checks()...)
	if raw, _ := json.Marshal(r); r.Healthy || strings.Contains(string(raw), "secret-word") {
		t.Errorf("%s", raw)
	}
}
