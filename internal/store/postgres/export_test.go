package postgres

import (
	"time"

	"github.com/noetl/noetl-go/internal/store"
)

// AppendSQL and PrepareWriter let a test look at the plan of the hot statement.
const AppendSQL = appendSQL

var PrepareWriter = prepareWriter

// Query is a statement whose plan the tests look at.
type Query struct {
	Text  string
	Args  []any
	Index string // that must be used
}

// Queries are the look-ups that must not scan.
func Queries() []Query {
	now := time.Now()
	list := func(index string, f store.ExecutionFilter) Query {
		text, args := listExecutionsSQL(f, 0, 10)
		return Query{text, args, index}
	}
	return []Query{
		{eventsSQL, []any{int64(1), int64(0), rowLimit(5)}, "execution_id_seq_key"},
		{eventByIDSQL, []any{int64(1), int64(1)}, "pkey"},
		{eventIDsSQL, []any{int64(1), []int64{1}}, "pkey"},
		{executionSQL, []any{int64(1)}, "execution_pkey"},
		{openExecutionsSQL, []any{int64(1), now, rowLimit(5)}, "execution_open"},
		{dueExecutionsSQL, []any{now, rowLimit(5)}, "execution_due"},
		{resultSQL, []any{int64(1), "r"}, "result_store_pkey"},
		{commandSQL, []any{int64(1), int64(1)}, "command_pkey"},
		{commandAnywhereSQL, []any{int64(1)}, "command_pkey"},
		{pendingSQL, []any{now, rowLimit(5)}, "command_pending"},
		{expiredSQL, []any{now, rowLimit(5)}, "command_leased"},
		{expireSQL, []any{now, "w", now}, "command_leased"},
		{entrySQL, []any{int64(1)}, "catalog_pkey"},
		{entryVersionSQL, []any{"p", 1}, "catalog_path_version_key"},
		{entryLatestSQL, []any{"p"}, "catalog_path_version_key"},
		list("execution_pkey", store.ExecutionFilter{}),
		list("execution_by_status", store.ExecutionFilter{Status: "RUNNING"}),
		list("execution_by_catalog", store.ExecutionFilter{CatalogID: 1}),
		list("execution_by_parent", store.ExecutionFilter{ParentID: 1}),
	}
}
