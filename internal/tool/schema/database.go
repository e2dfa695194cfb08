package schema

import "slices"

// Kinds that speak SQL.

// sql is the statement in every spelling that authors use.
var sql = []Field{
	{Name: "query", Aliases: []string{"queries", "command", "commands", "cmd", "cmds"}, Shape: Code | List, Doc: "One or more statements; each item of a list holds whole ones."},
	{Name: "query_b64", Aliases: []string{"command_b64", "commands_b64"}, Shape: Code, Doc: "The statements in base64."},
	{Name: "script", Shape: Map, Doc: "Statements kept elsewhere: `{uri, source: {type, …}}`."},
	{Name: "params", Shape: List | Map, Doc: "Values for `$1`, `$2`, … or `:name`."},
	{Name: "auth", Aliases: []string{"credential"}, Shape: Text | Map, Doc: "The credential."},
}

var sqlNeeds = []Need{{"query", "query_b64", "script"}}

const rowset = "`{columns, rows, row_count, affected_rows}` of the last statement, and `command_0`, `command_1`, … for each"

var postgres = &Kind{
	Name: "postgres", Doc: "Runs SQL on PostgreSQL.",
	Returns: rowset + "; with `truncated` and `truncation` where rows were left out", Needs: sqlNeeds,
	Fields: slices.Concat(sql, []Field{
		{Name: "connection", Aliases: []string{"connection_string"}, Shape: Text, Doc: "Connection string, if there is no credential."},
		{Name: "host", Shape: Text, Doc: "Server, instead of the credential's."},
		{Name: "port", Shape: Number, Default: "5432", Doc: "Its port."},
		{Name: "database", Shape: Text, Default: "postgres", Doc: "Database."},
		{Name: "user", Shape: Text, Default: "postgres", Doc: "Name to log in with."},
		{Name: "password", Shape: Text, Doc: "Password; better kept in a credential."},
		{Name: "sslmode", Shape: Text, Words: []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}, Default: "prefer", Doc: "Whether the connection is encrypted and the server checked."},
		{Name: "schema", Shape: Text, Doc: "Schema to look names up in, or several with commas."},
		{Name: "as_objects", Shape: Flag, Default: "true", Doc: "Rows as maps and not as lists."},
		{Name: "pool", Shape: Flag | Map, Default: "true", Doc: "Share connections with other steps: `{name, min_size, max_size, max_waiting, timeout, max_lifetime, max_idle}`; false = one for this call alone."},
		{Name: "transaction", Shape: Flag, Default: "false", Doc: "All statements in one transaction."},
		{Name: "readonly", Shape: Flag, Default: "false", Doc: "All statements in one transaction that cannot change anything."},
		{Name: "numeric", Shape: Text, Words: []string{"number", "string"}, Doc: "How numerics come back. When not given: a number where that is exact, else a string."},
		{Name: "max_rows", Shape: Number, Doc: "Rows to return of each statement at most; the rest is left out."},
		{Name: "max_bytes", Shape: Number, Doc: "Bytes of rows to return of each statement at most."},
	}),
}

var duckdb = &Kind{
	Name: "duckdb", Doc: "Runs SQL on DuckDB, by default in a file of the execution. The file is on the worker that runs the step and is removed a day after its last use.",
	Returns: rowset + "; with `executed_commands` and `database_path`", Needs: sqlNeeds,
	Fields: slices.Concat(sql, []Field{
		{Name: "database", Aliases: []string{"db_path"}, Shape: Text, Doc: "Database file, or `:memory:`. A relative one is below `noetldb` in the data directory; nothing is the file of the execution."},
		{Name: "as_objects", Shape: Flag, Default: "true", Doc: "Rows as maps and not as lists."},
		{Name: "gcs_credential", Shape: Text, Doc: "Credential for Google Cloud Storage."},
		{Name: "auto_secrets", Shape: Flag, Default: "true", Doc: "Make DuckDB secrets of the credentials, for as long as the call lasts. Types: s3, aws, gcs, gcs_hmac, azure, postgres, mysql, bearer."},
		{Name: "require_cloud_output", Shape: Flag, Default: "false", Doc: "Refuse to run unless a statement copies to cloud storage."},
		{Name: "affinity", Shape: Text, Words: []string{"execution"}, Doc: "Says that steps share the file of the execution, which is on the worker that ran them."},
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
	{Name: "source", Shape: Map, Doc: "Where from: `{type, …}`. postgres and duckdb: `query` or `table`; http: `url, method, headers, params, json, data_path, format`; csv, json, ndjson, parquet: `path` or `ref`; result: `ref, data_path`. With `auth` where it is needed."},
	{Name: "target", Shape: Map, Doc: "Where to: `{type, …}`. postgres and duckdb: `table`; csv, ndjson, parquet: `path`; result: a stored list of objects. With `auth` and `mapping`."},
	{Name: "mapping", Shape: Map, Doc: "Column of the target to field of the source; dots lead into JSON. Without it, columns go by their names."},
	{Name: "mode", Shape: Text, Words: []string{"append", "replace", "upsert"}, Default: "append", Doc: "What becomes of rows that are there."},
	{Name: "key", Shape: Text | List, Doc: "Columns that identify a row, for upsert."},
	{Name: "chunk_size", Shape: Number, Default: "1000", Doc: "Rows of a chunk. The first chunk of a source without columns of its own shows what fields there are."},
	{Name: "checkpoint", Shape: Flag, Default: "false", Doc: "One transaction for each chunk and not for all."},
}

var transfer = &Kind{
	Name: "transfer", Doc: "Copies rows from one system to another, in one transaction and without holding them all.",
	Returns: "`{direction, source_type, target_type, mode, rows_transferred, chunks_processed, target_table, columns}`; with `ref` and `stored` for a stored result",
	Fields:  slices.Clone(transferFields),
	Needs:   []Need{{"source"}, {"target"}},
}

var snowflakeTransfer = &Kind{
	Name: "snowflake_transfer", Doc: "An older name of transfer.",
	Returns: transfer.Returns, NoWorker: "write kind: transfer",
	Fields: slices.Clone(transferFields),
	Needs:  []Need{{"source"}, {"target"}},
}
