package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// A server gives a hundred executions at once; whoever asks for more gets them.
func TestListGivesAsManyAsAsked(t *testing.T) {
	t.Parallel()
	const all = 230
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		newest := all
		if before, err := strconv.Atoi(q.Get("before")); err == nil {
			newest = before - 1
		}
		limit, _ := strconv.Atoi(q.Get("limit"))
		rows := []map[string]any{}
		for id := newest; id > 0 && len(rows) < min(limit, 100); id-- {
			rows = append(rows, map[string]any{"execution_id": id, "status": "COMPLETED", "path": "p"})
		}
		_ = json.NewEncoder(w).Encode(rows)
	}))
	t.Cleanup(srv.Close)
	for limit, want := range map[int]int{1: 1, 100: 100, 101: 101, 200: 200, 1000: all} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), []string{"list", "--limit", strconv.Itoa(limit), "--server-url", srv.URL}, &Env{Stdout: &out, Stderr: &errs})
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
		last := fmt.Sprint(all - want + 1)
		if code != ExitOK || len(lines) != want || strings.Fields(lines[len(lines)-1])[0] != last {
			t.Errorf("limit %d: exit code %d, %d lines, want %d down to %s: %s", limit, code, len(lines), want, last, errs.String())
		}
	}
}
