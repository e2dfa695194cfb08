package sqlite

import (
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/store"
)

// Queries are the statements whose plans the tests look at, with the index
// each must use.
func Queries() map[string]string {
	out := map[string]string{
		eventsSQL:                           "event_by_seq",
		eventByIDSQL:                        "event_by_id",
		eventIDsSQL:                         "event_by_id",
		executionSQL:                        "INTEGER PRIMARY KEY",
		openExecutionsSQL:                   "execution_open",
		dueExecutionsSQL:                    "execution_due",
		countExecutionsSQL:                  "execution_by_status",
		resultSQL:                           "result_by_ref",
		commandSQL:                          "PRIMARY KEY",
		commandAnywhereSQL:                  "PRIMARY KEY",
		commandsOfSQL:                       "command_by_execution",
		deleteCommandsSQL:                   "command_by_execution",
		purgeCommandsSQL:                    "PRIMARY KEY (event_id<?)",
		pendingSQL:                          "command_pending",
		expireLeasesSQL:                     "command_held",
		renewWorkerSQL:                      "command_held (worker_id=?)",
		renewLeaseSQL:                       "PRIMARY KEY",
		touchExecutionSQL:                   "INTEGER PRIMARY KEY",
		wakeExecutionSQL:                    "INTEGER PRIMARY KEY",
		updateExecutionSQL:                  "INTEGER PRIMARY KEY",
		updateCommandSQL:                    "PRIMARY KEY",
		entrySQL:                            "INTEGER PRIMARY KEY",
		entryVersionSQL:                     "sqlite_autoindex_catalog_1",
		entryLatestSQL:                      "sqlite_autoindex_catalog_1",
		archiveSQL:                          "sqlite_autoindex_catalog_1",
		executionExistsSQL:                  "INTEGER PRIMARY KEY",
		endedExecutionsSQL:                  "INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		newestOf + "'FAILED'" + newestFirst: "execution_by_path (path=? AND status=?)",
		valuesOfSQL:                         "result_by_",
		removedAtSQL:                        "INTEGER PRIMARY KEY",
		heldSQL:                             "INTEGER PRIMARY KEY",
		stillEndedSQL:                       "INTEGER PRIMARY KEY",
		deleteOf("result_store"):            "(execution_id=?)",
		deleteOf("result_chunk"):            "(execution_id=?)",
		deleteOf("outbox"):                  "(execution_id=?)",
		deleteOf("transient"):               "transient_by_name (execution_id=?)",
		deleteOf("projection_snapshot"):     "projection_snapshot_by_id (execution_id=?)",
		deleteOf("execution"):               "INTEGER PRIMARY KEY",
		openChildSQL:                        "execution_by_parent (parent_execution_id=?",
		valuesSQL:                           "result_by_",
		unpublishedSQL:                      "(execution_id=?",
		deleteOf("event"):                   "(execution_id=?)",
		deleteOf("command"):                 "command_by_execution (execution_id=?)",
		removeKeychainSQL:                   "keychain_by_execution (execution_id=?)",
		purgeGoneSQL:                        "execution_removed_by_time (removed_at<?)",
		claimHolderSQL:                      "PRIMARY KEY (subscription_id=? AND dedup_key=?)",
		purgeClaimsSQL:                      "subscription_dedup_over (expires_at<?)",
		outboxDueSQL:                        "outbox_taken (execution_id=? AND outbox_id<?)",
		claimOutboxSQL:                      "INTEGER PRIMARY KEY",
		markPublishedSQL:                    "INTEGER PRIMARY KEY",
		purgeOutboxSQL:                      "outbox_done (status=? AND published_at<?)",
		variablesSQL:                        "transient_by_name",
		accessVariableSQL:                   "transient_by_name (execution_id=? AND var_name=?)",
		snapshotSQL:                         "projection_snapshot_by_id",
		loggedExecutionsSQL:                 "(execution_id>?)",
		projectedExecutionsSQL:              "INTEGER PRIMARY KEY (rowid>?)",
		lastSeqSQL:                          "event_by_seq",
		statusesSQL:                         "execution_by_status",
		pathsSQL:                            "execution_by_path",
	}
	for text, index := range listQueries() {
		out[text] = index
	}
	for text, index := range accessQueries() {
		out[text] = index
	}
	return out
}

// accessQueries are those of tokens, sessions and actions.
func accessQueries() map[string]string {
	out := map[string]string{
		tokenSQL: "INTEGER PRIMARY KEY", listTokensSQL: "INTEGER PRIMARY KEY (rowid<?)", useTokenSQL: "INTEGER PRIMARY KEY",
		revokeTokenSQL: "INTEGER PRIMARY KEY", sessionSQL: "PRIMARY KEY", useSessionSQL: "PRIMARY KEY", endSessionSQL: "PRIMARY KEY",
		endCallerSQL: "access_session_by_principal", purgeSessSQL: "access_session_by_end", takeLoginSQL: "PRIMARY KEY",
		purgeLoginsSQL: "access_login_by_end", purgeActionsSQL: "INTEGER PRIMARY KEY (rowid<?)",
	}
	for index, f := range map[string]store.ActionFilter{
		"INTEGER PRIMARY KEY (rowid>? AND rowid<?)":              {},
		"action_by_actor (actor=? AND rowid>? AND rowid<?)":      {Actor: "x"},
		"action_by_type (action_type=? AND rowid>? AND rowid<?)": {Type: "x", Before: 5},
		"action_by_target (target=? AND rowid>? AND rowid<?)":    {Target: "x"},
	} {
		text, _ := listActionsSQL(f)
		out[text] = index
	}
	return out
}

// SortingQueries sort, but only rows of which there are few.
func SortingQueries() map[string]string {
	return map[string]string{
		expiredSQL:        "command_held (worker_id=? AND lease_until<?)",
		claimedOutboxSQL:  "event_by_id (execution_id=? AND event_id=?)",
		newestEndedSQL:    "execution_by_path (path=? AND status=?)",
		executionsByIDSQL: "INTEGER PRIMARY KEY (rowid=?)",
	}
}

// listQueries are those of a list by each filter, with and without a status.
func listQueries() map[string]string {
	now := time.Unix(1800000000, 0)
	out := map[string]string{}
	for _, c := range []struct {
		filter store.ExecutionFilter
		index  string
	}{
		{store.ExecutionFilter{}, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{store.ExecutionFilter{Before: 5}, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{store.ExecutionFilter{StartedFrom: now, StartedTo: now}, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{store.ExecutionFilter{Path: "x"}, "execution_by_path (path=? AND status=? AND rowid>? AND rowid<?)"},
		{store.ExecutionFilter{PathPrefix: "x"}, "execution_by_path (path=? AND status=? AND rowid>? AND rowid<?)"},
		{store.ExecutionFilter{CatalogID: 1}, "execution_by_catalog (catalog_id=? AND status=? AND rowid>? AND rowid<?)"},
		{store.ExecutionFilter{ParentID: 1}, "execution_by_parent (parent_execution_id=? AND status=? AND rowid>? AND rowid<?)"},
		{store.ExecutionFilter{Pool: "x"}, "execution_by_pool (pool=? AND status=? AND rowid>? AND rowid<?)"},
		{store.ExecutionFilter{Pool: "x", StartedTo: now}, "execution_by_pool (pool=? AND status=? AND rowid>? AND rowid<?)"},
	} {
		for _, status := range []string{"", "FAILED"} {
			c.filter.Status = status
			l := newListing(&c.filter)
			l.paths, l.values = []string{"x"}, append(l.values, "x")
			if err := l.compareRest(); err != nil {
				panic(err)
			}
			index := c.index
			if l.column == "" && status != "" {
				index = "execution_by_status (status=? AND rowid>? AND rowid<?)"
			}
			page, _ := l.pageSQL(stream{})
			out[page] = index
			if l.column == "" {
				continue
			}
			heads, _, err := l.headsSQL()
			if err != nil {
				panic(fmt.Sprint("heads of ", c.index, ": ", err))
			}
			out[heads], out[l.nextSQL()] = index, index
		}
	}
	return out
}
