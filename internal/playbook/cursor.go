package playbook

import (
	"slices"
	"strconv"
)

// claimFields are the kinds of tools that can claim rows, and the setting of
// each that says what to run.
var claimFields = map[string]string{
	"postgres": "command", "duckdb": "command", "ducklake": "command", "snowflake": "command", "shell": "command",
	"python": "code", "http": "url",
}

// claimLabel is what the claim is called among the tasks of a worker.
const claimLabel = "claim"

// readCursor reads how a loop claims its rows.
func (r *reader) readCursor(n, spec, frame *node, l *Loop) {
	c := &CursorLoop{Kind: "postgres", MaxRows: 1, RowConcurrency: 1}
	l.Mode, l.Cursor = Cursor, c
	if k := n.get("kind").str(); k != "" {
		c.Kind = k
	}
	c.MaxRows = atLeastOne(frame.get("max_rows"))
	c.RowConcurrency = atLeastOne(either(frame.get("row_concurrency"), spec.get("row_concurrency")))
	c.WholeFrame = keyword(frame.get("process")) == "frame"
	if c.WholeFrame && c.RowConcurrency > 1 {
		r.warn(either(frame.get("row_concurrency"), spec.get("row_concurrency")).at(), "ignored_key",
			`"row_concurrency" has no effect with process: frame`, "remove it, or let max_in_flight run frames side by side")
	}
	claim := n.get("claim")
	if claim.str() == "" {
		if !r.reported(n.path() + ".claim") {
			r.fail(n.at(), "missing_claim", "the cursor has no claim statement", "add claim: | with the statement that takes the next rows")
		}
		return
	}
	field := claimFields[c.Kind]
	if field == "" {
		able := make([]string, 0, len(claimFields))
		for k := range claimFields {
			able = append(able, k)
		}
		slices.Sort(able)
		r.fail(either(n.get("kind"), n).at(), "bad_cursor", "a tool of kind "+quote(c.Kind)+" cannot claim rows",
			listing("use one of:", able))
		return
	}
	c.Task = r.task(claimTask(n, c.Kind, field), claimLabel)
}

// claimTask writes a cursor as the task that claims: the statement where the
// kind looks for it, its credential and its further settings.
func claimTask(n *node, kind, field string) *node {
	t := &node{shape: mapShape, pos: n.pos, parent: n.parent, key: n.key}
	k := textNode(n.pos, kind)
	k.parent, k.key = n, "kind"
	t.entries = append(t.entries, entry{"kind", n.pos, k})
	t.entries = append(t.entries, entry{field, n.get("claim").pos, n.get("claim")})
	if auth := n.get("auth"); auth.given() {
		t.entries = append(t.entries, entry{"auth", auth.pos, auth})
	}
	return merged(given(n.get("options")), t)
}

// atLeastOne reads a count of a map that conforms; absent is one.
func atLeastOne(n *node) int {
	i, err := strconv.Atoi(n.str())
	if err != nil {
		return 1
	}
	return i
}
