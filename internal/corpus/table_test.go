package corpus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// tableWant is what a query answers after the run.
type tableWant struct {
	SQL  string  `yaml:"sql"`
	Rows [][]any `yaml:"rows"`
}

// tableRows are the rows of a query as JSON has them.
type tableRows struct {
	rows [][]any
	err  error
}

// query runs what an expectation asks for; <eid> is the execution.
func query(ctx context.Context, dsn, sql, execution string) (got tableRows) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return tableRows{err: err}
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, strings.ReplaceAll(sql, "<eid>", execution))
	if err != nil {
		return tableRows{err: err}
	}
	values, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		return tableRows{err: err}
	}
	raw, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(raw, &got.rows)
	}
	got.err = err
	return got
}

func compareTables(want *expectation, h *history) string {
	for _, w := range want.Tables {
		got := h.tables[w.SQL]
		if got.err != nil {
			return fmt.Sprintf("tables: %s: %v", w.SQL, got.err)
		}
		if len(got.rows) != len(w.Rows) {
			return fmt.Sprintf("tables: %s: want %d rows, got %s", w.SQL, len(w.Rows), brief(got.rows))
		}
		for i, row := range w.Rows {
			if len(row) != len(got.rows[i]) {
				return fmt.Sprintf("tables: %s: want %d columns, got %d", w.SQL, len(row), len(got.rows[i]))
			}
			for k := range row {
				if diff := compareCell(row[k], got.rows[i][k], fmt.Sprintf("row %d column %d", i+1, k+1)); diff != "" {
					return "tables: " + w.SQL + ": " + diff
				}
			}
		}
	}
	return ""
}

// compareCell takes texts of JSON for what they say: their spaces may differ.
func compareCell(want, got any, at string) string {
	w, isText := want.(string)
	g, isToo := got.(string)
	if isText && isToo && w != g {
		var a, b any
		if strings.ContainsAny(w[:min(1, len(w))], "[{") && json.Unmarshal([]byte(w), &a) == nil && json.Unmarshal([]byte(g), &b) == nil {
			return partial(a, b, at)
		}
	}
	return partial(want, got, at)
}

var repeated = regexp.MustCompile(`^(\d+) x (\d+)$`)

// compareRequests looks at what the test server answered: "total" is all of it,
// other keys are paths in which * is any segment.
func compareRequests(want *expectation, h *history) string {
	for _, key := range slices.Sorted(maps.Keys(want.Requests)) {
		var got []int
		for _, r := range h.requests {
			if match, _ := path.Match(key, r.Path); key == "total" || match {
				got = append(got, r.Status)
			}
		}
		wanted, err := wantedStatuses(want.Requests[key])
		if err != nil {
			return fmt.Sprintf("http_requests: %s: %v", key, err)
		}
		if !slices.Equal(wanted, got) {
			return fmt.Sprintf("http_requests: %s: want %s, got %s", key, tally(wanted), tally(got))
		}
	}
	return ""
}

func wantedStatuses(v any) (out []int, err error) {
	switch v := v.(type) {
	case string:
		m := repeated.FindStringSubmatch(v)
		if m == nil {
			return nil, fmt.Errorf("%q is not like 3 x 200", v)
		}
		n, _ := strconv.Atoi(m[1])
		status, _ := strconv.Atoi(m[2])
		return slices.Repeat([]int{status}, n), nil
	case []any:
		for _, one := range v {
			status, ok := one.(int)
			if !ok {
				return nil, fmt.Errorf("%v is no status", one)
			}
			out = append(out, status)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%v is no list of statuses", v)
}

// tally shortens a list of statuses.
func tally(list []int) string {
	if len(list) <= 12 {
		return fmt.Sprint(list)
	}
	by := map[int]int{}
	for _, status := range list {
		by[status]++
	}
	return fmt.Sprintf("%d: %v", len(list), by)
}
