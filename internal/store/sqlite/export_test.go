package sqlite

import "github.com/noetl/noetl-go/internal/store"

// Queries are the statements whose plans the tests look at, with the index
// each must use.
func Queries() map[string]string {
	list := func(f store.ExecutionFilter) string {
		text, _ := listExecutionsSQL(f)
		return text
	}
	return map[string]string{
		eventsSQL:          "event_by_seq",
		eventByIDSQL:       "event_by_id",
		eventIDsSQL:        "event_by_id",
		executionSQL:       "INTEGER PRIMARY KEY",
		openExecutionsSQL:  "execution_open",
		dueExecutionsSQL:   "execution_due",
		resultSQL:          "result_by_ref",
		commandSQL:         "PRIMARY KEY",
		commandAnywhereSQL: "PRIMARY KEY",
		pendingSQL:         "command_pending",
		expiredSQL:         "command_leased",
		expireLeasesSQL:    "command_leased",
		renewLeaseSQL:      "PRIMARY KEY",
		touchExecutionSQL:  "INTEGER PRIMARY KEY",
		updateExecutionSQL: "INTEGER PRIMARY KEY",
		updateCommandSQL:   "PRIMARY KEY",
		entrySQL:           "INTEGER PRIMARY KEY",
		entryVersionSQL:    "sqlite_autoindex_catalog_1",
		entryLatestSQL:     "sqlite_autoindex_catalog_1",

		list(store.ExecutionFilter{Status: "RUNNING"}): "execution_by_status",
		list(store.ExecutionFilter{CatalogID: 1}):      "execution_by_catalog",
		list(store.ExecutionFilter{ParentID: 1}):       "execution_by_parent",
	}
}
