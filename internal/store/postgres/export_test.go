package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// PrepareWriter lets a test look at the plans of the hot statements.
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
	actions := func(index string, f store.ActionFilter) Query {
		text, args := listActionsSQL(f)
		return Query{text, args, index}
	}
	return []Query{
		actions("action_pkey", store.ActionFilter{}),
		actions("action_by_actor", store.ActionFilter{Actor: "x"}),
		actions("action_by_type", store.ActionFilter{Type: "x", Before: 5}),
		actions("action_by_target", store.ActionFilter{Target: "x"}),
		{purgeActionsSQL, []any{int64(5), rowLimit(5)}, "action_pkey"},
		{tokenSQL, []any{int64(1)}, "access_token_pkey"},
		{listTokensSQL, []any{int64(1), rowLimit(5)}, "access_token_pkey"},
		{useTokensSQL, []any{[]int64{1}, []time.Time{now}}, "access_token_pkey"},
		{sessionSQL, []any{"h"}, "access_session_pkey"},
		{useSessionSQL, []any{"h", now, now}, "access_session_pkey"},
		{endCallerSQL, []any{"p"}, "access_session_by_principal"},
		{purgeSessSQL, []any{now, rowLimit(5)}, "access_session_by_end"},
		{takeLoginSQL, []any{"h"}, "access_login_pkey"},
		{purgeLoginsSQL, []any{now, rowLimit(5)}, "access_login_by_end"},
		{eventsSQL, []any{int64(1), int64(0), rowLimit(5)}, "execution_id_seq_key"},
		{eventByIDSQL, []any{int64(1), int64(1)}, "pkey"},
		{eventIDsSQL, []any{int64(1), []int64{1}}, "pkey"},
		{executionSQL, []any{int64(1)}, "execution_pkey"},
		{openExecutionsSQL, []any{int64(1), now, rowLimit(5)}, "execution_open"},
		{dueExecutionsSQL, []any{now, rowLimit(5)}, "execution_due"},
		{resultSQL, []any{int64(1), "r"}, "result_store_pkey"},
		{commandSQL, []any{int64(1), int64(1)}, "command_"},
		{commandAnywhereSQL, []any{int64(1)}, "command_pkey"},
		{commandsOfSQL, []any{int64(1)}, "command_"},
		{pendingSQL, []any{now, rowLimit(5)}, "command_pending"},
		{expiredSQL, []any{now, rowLimit(5)}, "command_leased"},
		{expireSQL, []any{now, "w", now}, "command_"},
		{renewWorkerSQL, []any{now, "w", now}, "command_held"},
		{entrySQL, []any{int64(1)}, "catalog_pkey"},
		{entryVersionSQL, []any{"p", 1}, "catalog_present"},
		{entryLatestSQL, []any{"p"}, "catalog_present"},
		{claimHolderSQL, []any{int64(1), "k", now}, "subscription_dedup_pkey"},
		{purgeClaimsSQL, []any{now, rowLimit(5)}, "subscription_dedup_by_end"},
		{claimOutboxSQL, []any{now, now, "t", 5, 3}, "outbox_unpublished"},
		{outboxEventsSQL, []any{[]int64{1}, []int64{1}}, "pkey"},
		{markPublishedSQL, []any{[]int64{1}, "t", now}, "outbox_pkey"},
		{purgeOutboxSQL, []any{now, rowLimit(5)}, "outbox_published"},
		{variablesSQL, []any{int64(1)}, "transient_pkey"},
		{snapshotSQL, []any{int64(1), "t", "i"}, "projection_snapshot_pkey"},
		{lastSeqSQL, []any{int64(1)}, "execution_id_seq_key"},
		{loggedSQL, []any{int64(1), rowLimit(5)}, "execution_id"},
		{projectedSQL, []any{int64(1), rowLimit(5)}, "execution_pkey"},
		{purgeCommandsSQL, []any{now, rowLimit(5), int64(1)}, "command_pkey"},
		{runtimeSQL, []any{"worker_pool", "w"}, "runtime_kind_name_key"},
		list("execution_pkey", store.ExecutionFilter{}),
		list("execution_by_status", store.ExecutionFilter{Status: "RUNNING"}),
		list("execution_by_catalog_status", store.ExecutionFilter{CatalogID: 1}),
		list("execution_by_parent_status", store.ExecutionFilter{ParentID: 1}),
		list("execution_by_pool", store.ExecutionFilter{Pool: "p"}),
		list("execution_by_path", store.ExecutionFilter{Path: "p"}),
		list("execution_by_path", store.ExecutionFilter{PathPrefix: "p"}),
	}
}

// BusyQueries are those of a database that has seen much: x is an execution in
// it, t a time within its past.
func BusyQueries(x int64, t time.Time) map[string]Query {
	now := time.Now()
	queries := map[string]Query{
		"EndedExecutions":         {endedExecutionsSQL, []any{x, int64(1) << 62, now, rowLimit(1000)}, "execution_pkey"},
		"NewestEnded":             {newestEndedSQL, []any{"fill/p7", 20}, "execution_by_path"},
		"there":                   {presentSQL, []any{[]int64{x, x + 1}}, "execution_pkey"},
		"open children":           {openChildrenSQL, []any{[]int64{x, x + 1}}, "execution_by_parent"},
		"unpublished":             {unpublishedSQL, []any{[]int64{x, x + 1}}, "outbox_"},
		"delete events":           {deleteOf("event"), []any{[]int64{x, x + 1}}, "execution_id"},
		"ValuesOf":                {valuesOfSQL, []any{[]int64{x, x + 1}}, "result_store"},
		"values to lock":          {lockValuesSQL, []any{[]int64{x, x + 1}}, "result_store"},
		"pinners":                 {pinnersSQL, []any{[]int64{x, x + 1}}, "result_store"},
		"ended to lock":           {lockEndedSQL, []any{[]int64{x, x + 1}}, "execution_pkey"},
		"delete results":          {deleteOf("result_store"), []any{[]int64{x, x + 1}}, "result_store"},
		"delete from the outbox":  {deleteOf("outbox"), []any{[]int64{x, x + 1}}, "outbox_"},
		"RemovedAt":               {removedAtSQL, []any{int64(7)}, "execution_removed_pkey"},
		"PurgeRemoved":            {purgeGoneSQL, []any{now, rowLimit(100)}, "execution_removed_by_time"},
		"PutPart":                 {putPartSQL, []any{x, "k", 1, []byte("d")}, "execution_pkey"},
		"delete commands":         {deleteOf("command"), []any{[]int64{x, x + 1}}, "command_"},
		"Execution":               {executionSQL, []any{x}, "execution_pkey"},
		"Events page":             {eventsSQL, []any{x, int64(0), rowLimit(50)}, "seq"},
		"Event":                   {eventByIDSQL, []any{x, x + 1}, "pkey"},
		"Command by its event":    {commandAnywhereSQL, []any{x + 2}, "command_pkey"},
		"Command":                 {commandSQL, []any{x + 2, x}, "command_"},
		"CommandsOf":              {commandsOfSQL, []any{x}, "command_by_execution"},
		"PendingCommands":         {pendingSQL, []any{now, rowLimit(100)}, "command_pending"},
		"ExpiredCommands":         {expiredSQL, []any{now, rowLimit(100)}, "command_leased"},
		"ExpireLeases":            {expireSQL, []any{now, "w", now}, "command_"},
		"RenewWorker":             {renewWorkerSQL, []any{now, "w1", t}, "command_held"},
		"DueExecutions":           {dueExecutionsSQL, []any{now, rowLimit(100)}, "execution_due"},
		"OpenExecutions":          {openExecutionsSQL, []any{int64(0), now, rowLimit(100)}, "execution_"},
		"ClaimOutbox":             {claimOutboxSQL, []any{now, now.Add(-time.Minute), "t", 100, 3}, "outbox_unpublished"},
		"Outbox events":           {outboxEventsSQL, []any{[]int64{x}, []int64{x + 1}}, "pkey"},
		"MarkPublished":           {markPublishedSQL, []any{[]int64{1, 2, 3}, "", now}, "outbox_pkey"},
		"PurgeOutbox":             {purgeOutboxSQL, []any{now, rowLimit(100)}, "outbox_published"},
		"ClaimHolder":             {claimHolderSQL, []any{int64(1), "k7", t}, "subscription_dedup_pkey"},
		"PurgeClaims":             {purgeClaimsSQL, []any{now, rowLimit(100)}, "subscription_dedup_by_end"},
		"LoggedExecutions":        {loggedSQL, []any{x, rowLimit(100)}, "execution_id"},
		"ProjectedExecutions":     {projectedSQL, []any{x, rowLimit(100)}, "execution_pkey"},
		"PurgeCommands":           {purgeCommandsSQL, []any{now, rowLimit(100), int64(store.IDAt(now))}, "command_pkey"},
		"Reproject: the last seq": {lastSeqSQL, []any{x}, "seq"},
		"Schedule":                {scheduleSQL, []any{int64(7)}, "schedule_pkey"},
		"ScheduleByName":          {scheduleByNameSQL, []any{"s7"}, "schedule_by_name"},
		"DueSchedules":            {dueSchedulesSQL, []any{now, rowLimit(64)}, "schedule_wake"},
		"open ScheduleRuns":       {openRunsSQL, []any{int64(7), beginOfTime, endOfTime, rowLimit(0)}, "schedule_run_open"},
		"ScheduleRuns":            {runsSQL, []any{int64(7), beginOfTime, endOfTime, rowLimit(50)}, "schedule_run_pkey"},
		"PurgeScheduleRuns":       {purgeRunsSQL, []any{now.Add(-16 * time.Hour), rowLimit(100)}, "schedule_run_ended"},
	}
	for name, f := range map[string]store.ScheduleFilter{"owner": {Owner: "p8"}, "path": {Path: "p8"}, "page": {After: 7, Limit: 50}} {
		text, args := listSchedulesSQL(f)
		queries["ListSchedules by "+name] = Query{text, args, "schedule_"}
	}
	for name, f := range map[string]store.ExecutionFilter{
		"all": {}, "before": {Before: event.ID(x)}, "path": {Path: "FILL/p7"}, "any path": {Path: "fill"}, "no path": {Path: "nowhere"},
		"path prefix": {PathPrefix: "fill/p4"}, "no such prefix": {PathPrefix: "nowhere/"}, "catalog": {CatalogID: 7},
		"parent": {ParentID: event.ID(x)}, "pool": {Pool: "shared"}, "no pool": {Pool: "gpu"},
		"from": {StartedFrom: t}, "to": {StartedTo: t}, "range": {StartedFrom: t, StartedTo: t.Add(time.Hour)},
		"path in a range": {PathPrefix: "fill/p7", StartedFrom: t, StartedTo: t.Add(time.Hour)},
		"catalog before":  {CatalogID: 7, Before: event.ID(x)},
	} {
		for _, status := range []string{"", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"} {
			f.Status = status
			text, args := listExecutionsSQL(f, 0, 50)
			queries["list "+name+" "+status] = Query{text, args, "execution_"}
		}
	}
	return queries
}

// Discard ends all that the sessions of a store keep, as a pooler does that
// gives every transaction another one, and counts the statements they had
// prepared.
func (s *Store) Discard(ctx context.Context) (prepared int, err error) {
	pools := s.pools()
	for _, sh := range s.shards {
		pools = append(pools, sh.writers)
	}
	for _, pool := range pools {
		for _, conn := range pool.AcquireAllIdle(ctx) {
			var n int
			err = errors.Join(err, conn.QueryRow(ctx, "SELECT count(*) FROM pg_prepared_statements", pgx.QueryExecModeSimpleProtocol).Scan(&n))
			_, failed := conn.Exec(ctx, "DISCARD ALL")
			err = errors.Join(err, failed)
			prepared += n
			conn.Release()
		}
	}
	return prepared, err
}
