package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/store"
)

const (
	inspectSQL = `SELECT clock_timestamp(), current_user::text, current_setting('server_version'), pg_is_in_recovery(),
	has_database_privilege(current_database(), 'CREATE'), to_regnamespace('noetl') IS NOT NULL`
	inspectRightsSQL = `SELECT has_schema_privilege('noetl', 'USAGE'), has_schema_privilege('noetl', 'CREATE')`
	inspectTablesSQL = `SELECT c.relname::text, pg_has_role(c.relowner, 'USAGE'),
	has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = 'noetl' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`
	inspectSealedSQL = `SELECT name, data_encrypted FROM noetl.credential ORDER BY id DESC LIMIT 20`
)

// Inspect looks at each database of the options without changing anything, not
// even an old schema.
func Inspect(ctx context.Context, o Options) ([]store.Inspection, error) {
	var all []store.Inspection
	for _, dsn := range distinct(append([]string{o.DSN}, o.Shards...)) {
		in, err := inspect(ctx, dsn)
		if err != nil {
			return all, err
		}
		all = append(all, in)
	}
	return all, nil
}

func distinct(list []string) []string {
	var out []string
	for _, dsn := range list {
		known := dsn == ""
		for _, have := range out {
			known = known || sameDatabase(have, dsn)
		}
		if !known {
			out = append(out, dsn)
		}
	}
	return out
}

func inspect(ctx context.Context, dsn string) (in store.Inspection, err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return in, invalidDSN("the address of the database", "it cannot be read")
	}
	in.Where = fmt.Sprintf("%s:%d/%s", config.Host, config.Port, config.Database)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return in, coded("connect to "+in.Where, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var version string
	var standby, create bool
	if err := conn.QueryRow(ctx, inspectSQL).Scan(&in.Clock, &in.User, &version, &standby, &create, &in.Exists); err != nil {
		return in, coded("look at "+in.Where, err)
	}
	in.Software = "PostgreSQL " + version
	if standby {
		in.Lacks = append(in.Lacks, "writing: it is a standby")
	}
	known, err := knownMigrations()
	if err != nil {
		return in, err
	}
	in.Known = len(known)
	if !in.Exists {
		if !create {
			in.Lacks = append(in.Lacks, "CREATE on the database, to make the schema noetl")
		}
		return in, nil
	}
	return in, lookInside(ctx, conn, known, &in)
}

// lookInside looks at the schema of one database.
func lookInside(ctx context.Context, conn *pgx.Conn, known []store.Migration, in *store.Inspection) error {
	var usage, create bool
	if err := conn.QueryRow(ctx, inspectRightsSQL).Scan(&usage, &create); err != nil {
		return coded("look at rights", err)
	}
	if !create {
		in.Lacks = append(in.Lacks, "CREATE on schema noetl")
	}
	if !usage {
		in.Lacks = append(in.Lacks, "USAGE on schema noetl")
		return nil
	}
	if err := lookAtTables(ctx, conn, in); err != nil {
		return err
	}
	applied, err := appliedIn(ctx, conn)
	if err != nil {
		in.Lacks = append(in.Lacks, "SELECT on noetl.schema_migrations")
		return nil
	}
	in.Applied = len(applied)
	_, in.Schema = store.PendingMigrations(known, applied)
	rows, err := conn.Query(ctx, inspectSealedSQL)
	if err != nil {
		return nil // tables of an older program, or rights that were named above
	}
	in.Sealed = map[string]string{}
	var name, sealed string
	_, _ = pgx.ForEachRow(rows, []any{&name, &sealed}, func() error { in.Sealed[name] = sealed; return nil })
	return nil
}

func lookAtTables(ctx context.Context, conn *pgx.Conn, in *store.Inspection) error {
	rows, err := conn.Query(ctx, inspectTablesSQL)
	if err != nil {
		return coded("look at tables", err)
	}
	var name string
	var owned, usable bool
	_, err = pgx.ForEachRow(rows, []any{&name, &owned, &usable}, func() error {
		if !owned {
			in.NotOwned = append(in.NotOwned, name)
		}
		if !usable {
			in.Lacks = append(in.Lacks, "SELECT, INSERT, UPDATE and DELETE on noetl."+name)
		}
		return nil
	})
	return coded("look at tables", err)
}

func appliedIn(ctx context.Context, conn *pgx.Conn) (map[int]string, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return appliedMigrations(ctx, tx)
}
