package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/jinja"
)

type queryCommand struct {
	serverFlags
	SQL        string `arg:"" name:"sql" help:"SQL statement; @FILE reads a file." placeholder:"SQL"`
	Credential string `short:"c" help:"Credential of the database, as noetl credential list shows it." placeholder:"NAME"`
	Schema     string `short:"s" help:"Schema the names in it are of. Default: as the database says." placeholder:"NAME"`
	Format     string `short:"f" help:"table or json: the same as --output." enum:"table,json," default:"" hidden:""`
	outputFlags
}

// Run sends the statement and prints its rows.
func (c *queryCommand) Run(ctx context.Context, env *Env) error {
	sql, err := readSecret(c.SQL)
	if err != nil || strings.TrimSpace(sql) == "" {
		return invalidf("give a SQL statement, or @FILE")
	}
	if strings.TrimSpace(c.Credential) == "" {
		return invalidf("--credential is missing: name a credential of the database that is asked (noetl credential list); the server lets nobody ask its own")
	}
	if c.Format == "json" {
		c.JSON = true
	}
	cl, err := c.internalClient()
	if err != nil {
		return err
	}
	answer, err := cl.Query(ctx, client.QueryRequest{Query: sql, Schema: c.Schema, Credential: c.Credential})
	if err != nil {
		return err
	}
	if answer.Error != "" {
		return fmt.Errorf("the database refuses: %s", answer.Error)
	}
	t, err := queryTable(answer.Result)
	if err != nil {
		return err
	}
	if answer.Truncated {
		fmt.Fprintln(env.Stderr, "warning: there are more rows: ask for fewer with limit")
	}
	if len(t.rows) == 0 && answer.Command != "" {
		t.empty = answer.Command
	}
	return c.list(env, answer.Result, t)
}

// queryTable reads rows: objects by column, or lists.
func queryTable(raw json.RawMessage) (*table, error) {
	v, err := jinja.FromJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	rows, ok := v.([]any)
	if !ok {
		t := newTable("RESULT")
		t.add(string(raw), string(raw))
		return t, nil
	}
	t := &table{empty: "no rows"}
	for _, row := range rows {
		switch row := row.(type) {
		case *jinja.Dict:
			if t.head == nil {
				t.head = row.Keys()
			}
			cells := make([]string, len(t.head))
			for i, k := range t.head {
				value, _ := row.Get(k)
				cells[i] = cellOf(value)
			}
			t.add(first(cells), cells...)
		case []any:
			cells := make([]string, len(row))
			for i, value := range row {
				cells[i] = cellOf(value)
			}
			for len(t.head) < len(cells) {
				t.head = append(t.head, fmt.Sprintf("COLUMN %d", len(t.head)+1))
			}
			t.add(first(cells), cells...)
		default:
			t.head = []string{"RESULT"}
			t.add(cellOf(row), cellOf(row))
		}
	}
	return t, nil
}

func first(cells []string) string {
	if len(cells) == 0 {
		return ""
	}
	return cells[0]
}

// cellOf is a value as a cell: text as it is, nothing as a dash, the rest as JSON.
func cellOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		return v
	}
	b, err := jinja.ToJSON(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
