package mutants

// mutant is a rule and the smallest change that breaks it.
type mutant struct {
	rule  string
	how   string
	edits []edit
}

// edit replaces a text that occurs once in a file.
type edit struct{ file, old, new string }

var mutants = []mutant{
	{
		"only the holder's report ends a command", "the report of a worker whose lease was taken over is accepted",
		[]edit{{"internal/engine/apply_command.go", "\tif fenced(c, e) {", "\tif false && fenced(c, e) {"}},
	},
	{
		"a command ends once", "an end that was counted is counted again when it is repeated",
		[]edit{
			{"internal/engine/apply_command.go", "\tdrop(s, s.commands, c.ID)\n", ""},
			{"internal/control/report.go", "c == nil || !event.IsFinal(c.Status) {\n\t\treturn 0, false", "c == nil || true {\n\t\treturn 0, false"},
		},
	},
	{
		"what is given back keeps its command", "a loop issues the iteration anew",
		[]edit{{
			"internal/engine/apply_command.go", "\t\tc.Status, c.Worker = event.StatusPending, \"\"\n",
			"\t\tc.Status, c.Worker = event.StatusPending, \"\"\n\t\tif r := s.currentRun(c.Step, c.Gen); r != nil && c.Index >= 0 {\n\t\t\ts.touch(r).next = c.Index\n\t\t}\n",
		}},
	},
	{
		"max_in_flight bounds a loop", "one iteration more than allowed is under way",
		[]edit{{"internal/engine/loop.go", "r.openCmd < r.loop.window", "r.openCmd <= r.loop.window"}},
	},
	{
		"a join waits for every path that can still reach it", "steps that run are not looked at",
		[]edit{{"internal/engine/join.go", "st.cur != nil && st.cur.phase == running {", "st.cur != nil && st.cur.phase == failed {"}},
	},
	{
		"the arcs of a skipped step are followed", "only those of steps that ran are",
		[]edit{{"internal/engine/route.go", "r.phase != failed && !d.stopping()", "r.phase == completed && !d.stopping()"}},
	},
	{
		"an execution ends when nothing is open", "open commands are not looked at",
		[]edit{{"internal/engine/enter.go", "s.Final() || len(s.open) > 0", "s.Final()"}},
	},
	{
		"who appends second decides again", "the sequence is not compared",
		[]edit{{"internal/store/memstore/memstore.go", "x == nil && b.Expected != 0, x != nil && x.row.LastSeq != b.Expected", "x == nil && b.Expected != 0"}},
	},
	{
		"what could not be stored leaves no trace", "an attempt that lost is kept in memory",
		[]edit{{"internal/control/pass.go", "\t\tps.state.Rollback()\n", "\t\tps.state.Commit()\n"}},
	},
	{
		"an append counts when the log holds it", "one without an answer counts, too",
		[]edit{{"internal/control/pass_append.go", "!unknownOutcome(err) || !ps.tookEffect(ctx)", "!unknownOutcome(err)"}},
	},
	{
		"a command is taken over when its lease has ended", "any claim takes it over",
		[]edit{{"internal/control/claim.go", "return !row.LeaseUntil.After(ps.env.Now), ", "return true, "}},
	},
	{
		"a command is given up after its last attempt", "it waits for its last worker for ever",
		[]edit{{"internal/control/recover.go", "if c.Attempt < c.MaxAttempts {", "if c.Attempt <= c.MaxAttempts {"}},
	},
	{
		"what waits is announced again", "an announcement that is lost is not repeated",
		[]edit{{"internal/control/sweep.go", "\t\tp.sweepPending(ctx, &pending, p.now().Add(-p.o.Republish))\n", ""}},
	},
	{
		"a timer does not fire before its time", "it fires a second early",
		[]edit{{"internal/engine/timer.go", "t.at.After(d.env.Now) {", "t.at.After(d.env.Now.Add(time.Second)) {"}},
	},
	{
		"a child starts under the id its parent's log gives it", "it gets an id of its own",
		[]edit{{"internal/control/child.go", "ExecutionID: c.ID, CatalogID: what.catalogID", "CatalogID: what.catalogID"}},
	},
	{
		"a key starts one execution", "the start does not take the key",
		[]edit{{"internal/control/pass_append.go", "Claim:     ps.claimed(),", "Claim:     nil,"}},
	},
	{
		"events are published in the order of their log", "rows behind one that another publisher holds are handed out",
		[]edit{{"internal/store/memstore/outbox.go", "blocked[r.execution] = true", "blocked[r.execution] = false"}},
	},
	{
		"an event is published until it is acknowledged", "what the stream did not acknowledge counts as published",
		[]edit{{
			"internal/control/relay.go", "\t\tcase err == nil:\n\t\t\tpublished",
			"\t\tcase err == nil || event.CodeOf(err) == event.Unavailable:\n\t\t\tpublished",
		}},
	},
	{
		"what has ended is not ended by hand", "it is ended again",
		[]edit{{"internal/control/finalize.go", "\tcase in.before:\n\t\treturn nil\n", ""}},
	},
}
