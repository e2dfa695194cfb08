package schema

import "slices"

// Kinds that speak SQL.

// sql is the statement in every spelling that authors use.
var sql = []Field{
	{Name: "query", Aliases: []string{"queries", "command", "commands", "cmd", "cmds"}, Shape: Code | List, Doc: "One or more statements; a list is joined."},
	{Name: "query_b64", Aliases: []string{"command_b64", "commands_b64"}, Shape: Code, Doc: "The statements in base64."},
	{Name: "script", Shape: Map, Doc: "Statements kept elsewhere: `{uri, source: {type, …}}`."},
	{Name: "params", Shape: List | Map, Doc: "Values for `$1`, `$2`, … or `:name`."},
	{Name: "auth", Aliases: []string{"credential"}, Shape: Text | Map, Doc: "The credential."},
}

var sqlNeeds = []Need{{"query", "query_b64", "script"}}

const rowset = "`{columns, rows, row_count, affected_rows}` of the last statement, and `command_0`, `command_1`, … for each"

var postgres = &Kind{
	Name: "postgres", Doc: "Runs SQL on PostgreSQL.",
	Returns: rowset, Needs: sqlNeeds,
	Fields: slices.Concat(sql, []Field{
		{Name: "connection", Aliases: []string{"connection_string"}, Shape: Text, Doc: "Connection string."},
		{Name: "host", Shape: Text, Default: "localhost", Doc: "Server."},
		{Name: "port", Shape: Number, Default: "5432", Doc: "Its port."},
		{Name: "database", Shape: Text, Default: "postgres", Doc: "Database."},
		{Name: "user", Shape: Text, Default: "postgres", Doc: "Name to log in with."},
		{Name: "password", Shape: Text, Doc: "Password, or the name of a secret."},
		{Name: "schema", Shape: Text, Doc: "Schema to look names up in."},
		{Name: "as_objects", Shape: Flag, Default: "true", Doc: "Rows as maps and not as lists."},
		{Name: "pool", Shape: Flag | Map, Doc: "Connection pool: `{name, min_size, max_size, …}`."},
		{Name: "transaction", Shape: Flag, Default: "false", Doc: "All statements in one transaction."},
		{Name: "numeric", Shape: Text, Words: []string{"number", "string"}, Default: "number", Doc: "How numerics come back."},
	}),
}

var duckdb = &Kind{
	Name: "duckdb", Doc: "Runs SQL on DuckDB, by default in a file of the execution.",
	Returns: rowset, Needs: sqlNeeds,
	Fields: slices.Concat(sql, []Field{
		{Name: "database", Aliases: []string{"db_path"}, Shape: Text, Doc: "Database file, or `:memory:`."},
		{Name: "as_objects", Shape: Flag, Default: "true", Doc: "Rows as maps and not as lists."},
		{Name: "gcs_credential", Shape: Text, Doc: "Credential for Google Cloud Storage."},
		{Name: "auto_secrets", Shape: Flag, Default: "true", Doc: "Make secrets of the credentials."},
		{Name: "require_cloud_output", Shape: Flag, Doc: "Fail unless something was written to cloud storage."},
		{Name: "affinity", Shape: Text, Words: []string{"execution"}, Doc: "Keep the file's steps on one worker."},
	}),
}

var ducklake = &Kind{
	Name: "ducklake", Doc: "Runs SQL on a DuckLake catalog.",
	Returns: rowset, Needs: sqlNeeds,
	Fields: slices.Concat(sql, []Field{
		{Name: "catalog_connection", Shape: Text, Doc: "Connection string of the catalog."},
		{Name: "catalog_name", Shape: Text, Doc: "Its name."},
		{Name: "data_path", Shape: Text, Doc: "Where the data lies."},
		{Name: "create_catalog", Shape: Flag, Default: "true", Doc: "Make it when it is missing."},
		{Name: "use_catalog", Shape: Flag, Default: "true", Doc: "Look names up in it."},
		{Name: "memory_limit", Shape: Text, Doc: "Memory DuckDB may use."},
		{Name: "threads", Shape: Number, Doc: "Threads DuckDB may use."},
	}),
}

var snowflake = &Kind{
	Name: "snowflake", Doc: "Runs SQL on Snowflake.",
	Returns: rowset, Needs: sqlNeeds,
	Fields: slices.Concat(sql, []Field{
		{Name: "account", Shape: Text, Doc: "Account."},
		{Name: "user", Shape: Text, Doc: "Name to log in with."},
		{Name: "password", Shape: Text, Doc: "Password."},
		{Name: "private_key", Shape: Text, Doc: "Key to log in with."},
		{Name: "public_key", Shape: Text, Doc: "Its public half."},
		{Name: "private_key_passphrase", Shape: Text, Doc: "Passphrase of the key."},
		{Name: "warehouse", Shape: Text, Default: "COMPUTE_WH", Doc: "Warehouse."},
		{Name: "database", Shape: Text, Doc: "Database."},
		{Name: "schema", Shape: Text, Default: "PUBLIC", Doc: "Schema."},
		{Name: "role", Shape: Text, Doc: "Role."},
	}),
}

var transferFields = []Field{
	{Name: "source", Shape: Map, Doc: "Where from: `{type, query or url, auth, …}`."},
	{Name: "target", Shape: Map, Doc: "Where to: `{type, table, mapping, auth, …}`."},
	{Name: "mapping", Shape: Map, Doc: "Column of the target to field of the source."},
	{Name: "mode", Shape: Text, Words: []string{"append", "replace", "upsert"}, Default: "append", Doc: "What becomes of rows that are there."},
	{Name: "key", Shape: Text | List, Doc: "Columns that identify a row, for upsert."},
	{Name: "chunk_size", Shape: Number, Default: "1000", Doc: "Rows at a time."},
	{Name: "checkpoint", Shape: Flag, Default: "false", Doc: "One transaction for each chunk and not for all."},
}

var transfer = &Kind{
	Name: "transfer", Doc: "Copies rows from one system to another.",
	Returns: "`{direction, rows_transferred, chunks_processed, target_table, columns, …}`",
	Fields:  slices.Clone(transferFields),
	Needs:   []Need{{"source"}, {"target"}},
}

var snowflakeTransfer = &Kind{
	Name: "snowflake_transfer", Doc: "An older name of transfer.",
	Returns: transfer.Returns, NoWorker: "write kind: transfer",
	Fields: slices.Clone(transferFields),
	Needs:  []Need{{"source"}, {"target"}},
}
