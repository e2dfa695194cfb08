package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

// drains works off a queue that is a table of a SQLite file.
const drains = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: drains, path: e2e/drains}
workflow:
  - step: fill
    tool:
      kind: python
      code: |
        import sqlite3
        db = sqlite3.connect('DIR/queue.db')
        db.execute('CREATE TABLE queue (id INTEGER PRIMARY KEY, taken INTEGER)')
        db.executemany('INSERT INTO queue VALUES (?, 0)', [(i,) for i in range(25)])
        db.commit()
    next: drain
  - step: drain
    loop:
      cursor:
        kind: python
        claim: |
          import sqlite3
          db = sqlite3.connect('DIR/queue.db', timeout=30)
          rows = db.execute('''UPDATE queue SET taken = 1 WHERE id IN
            (SELECT id FROM queue WHERE taken = 0 ORDER BY id LIMIT ?) RETURNING id''', (most,)).fetchall()
          db.commit()
          result = {'rows': [{'id': r[0]} for r in rows]}
        options: {input: {most: "{{ __frame_max_rows }}"}}
      iterator: row
      spec: {mode: cursor, max_in_flight: 2, frame: {max_rows: 4, row_concurrency: 2}}
    tool: {kind: shell, command: "echo {{ row.id }} >> DIR/rows"}
    next: end
  - {step: end, tool: {kind: noop, result: {rows: "{{ drain.rows }}", failed: "{{ drain.failed }}", how: "{{ drain.cursor }}"}}}
`

func TestCursorDrainsAQueue(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		server := s.server(0, "--slots", "3")
		id := s.start(server, s.here(drains))
		d := s.ended(server, id, event.StatusCompleted)
		result(t, d, "end", `{"failed":0,"how":"drained","rows":25}`)
		got, want := s.lines("rows"), make([]string, 25)
		for i := range want {
			want[i] = fmt.Sprint(i)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("rows that were worked on: %s, want each of 25 once", strings.Join(got, " "))
		}
		// 25 rows in frames of 4 are seven frames, and one or two that were empty.
		if frames := count(s.log(server, id), event.FrameCommitted); frames < 8 || frames > 9 {
			t.Errorf("%d frames were committed, want 8 or 9", frames)
		}
		s.stop(server)
		if p := prove(t, s.open(), id); p.reclaims != 0 {
			t.Errorf("%d claims were taken over though nobody died", p.reclaims)
		}
	})
}
