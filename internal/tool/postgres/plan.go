package postgres

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/source"
	"github.com/noetl/noetl-go/internal/tool/sqltext"
)

// plan is what a step asks for, read and checked.
type plan struct {
	statements  []statement
	target      target
	pool        poolSpec
	searchPath  string // as SQL; "" = the server's
	asObjects   bool
	transaction bool
	readonly    bool
	numeric     string // number, string or "" = number where that is exact
	maxRows     int    // given by the step; 0 = not
	maxBytes    int64
}

// statement is one statement with the values of its parameters.
type statement struct {
	sqltext.Statement
	sent string     // Text with parameters by number
	args []argument // in that order
	word []string   // its first words
}

// argument is the value of a parameter.
type argument struct {
	name string // as the author wrote it: $1 or :name
	json json.RawMessage
}

func (t *Tool) readPlan(ctx context.Context, call *tool.Call) (*plan, error) {
	f := call.Fields()
	p := &plan{}
	text, err := sqlOf(ctx, call, f)
	if err != nil {
		return nil, err
	}
	if err := p.readFlags(f); err != nil {
		return nil, err
	}
	if err := p.readStatements(call, text); err != nil {
		return nil, err
	}
	login, err := call.Login(ctx, f)
	if err != nil {
		return nil, err
	}
	if p.target, err = readTarget(call, f, login); err != nil {
		return nil, err
	}
	if p.pool, err = readPool(f, t.opts.Pool); err != nil {
		return nil, err
	}
	p.searchPath, err = searchPath(f, login)
	return p, err
}

func (p *plan) readFlags(f tool.Fields) (err error) {
	if p.asObjects, err = f.Bool(true, "as_objects"); err != nil {
		return err
	}
	if p.transaction, err = f.Bool(false, "transaction"); err != nil {
		return err
	}
	if p.readonly, err = f.Bool(false, "readonly"); err != nil {
		return err
	}
	if p.numeric, err = f.String("numeric"); err != nil {
		return err
	}
	p.numeric = strings.ToLower(p.numeric)
	if p.numeric != "" && p.numeric != "number" && p.numeric != "string" {
		return tool.ConfigErrorf("numeric must be number or string, not %q", p.numeric)
	}
	rows, err := wholeField(f, 0, "max_rows")
	if err != nil {
		return err
	}
	p.maxRows = int(rows)
	p.maxBytes, err = wholeField(f, 0, "max_bytes")
	return err
}

// wholeField reads a count; def when absent.
func wholeField(f tool.Fields, def int64, name string) (int64, error) {
	_, v, ok := f.First(name)
	if !ok {
		return def, nil
	}
	n, err := whole(v)
	if err != nil || n < 1 {
		return 0, tool.ConfigErrorf("%s must be a whole number from 1", name)
	}
	return n, nil
}

func whole(v any) (int64, error) {
	text, err := tool.Text(v)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
}

// sqlOf finds the SQL under the names that authors use, the first that is there.
// A list is a list of texts, each of whole statements.
func sqlOf(ctx context.Context, call *tool.Call, f tool.Fields) ([]string, error) {
	if script, err := f.Object("script"); err != nil {
		return nil, err
	} else if script != nil {
		text, err := source.Load(ctx, call, script)
		return []string{text}, err
	}
	if name, v, ok := f.First("query_b64", "command_b64", "commands_b64"); ok {
		encoded, err := texts(name, v)
		if err != nil {
			return nil, err
		}
		for i := range encoded {
			plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded[i]), ""))
			if err != nil {
				return nil, tool.ConfigErrorf("%s is not base64", name)
			}
			encoded[i] = string(plain)
		}
		return encoded, nil
	}
	name, v, ok := f.First("query", "queries", "command", "commands", "cmd", "cmds")
	if !ok {
		return nil, tool.ConfigErrorf("no SQL: set query (or command, query_b64, script)")
	}
	return texts(name, v)
}

func texts(name string, v any) ([]string, error) {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		text, isText := item.(string)
		if !isText {
			return nil, tool.ConfigErrorf("%s must be SQL, or a list of it", name)
		}
		out = append(out, text)
	}
	return out, nil
}

// readStatements takes the SQL apart and gives each statement its parameters.
func (p *plan) readStatements(call *tool.Call, text []string) error {
	line := 0
	for _, part := range text {
		for _, s := range sqltext.Split(part) {
			s.Line += line
			s.Start += line
			p.statements = append(p.statements, statement{Statement: s, sent: s.Text, word: sqltext.Words(s.Text, 4)})
		}
		line += strings.Count(part, "\n") + 1
	}
	if len(p.statements) == 0 {
		return tool.ConfigErrorf("the SQL holds no statement")
	}
	if err := p.bind(call); err != nil {
		return err
	}
	for i := range p.statements {
		if err := p.check(i); err != nil {
			return err
		}
	}
	return nil
}

// bind gives statements the values of params.
func (p *plan) bind(call *tool.Call) error {
	if call.Config["params"] == nil {
		return nil
	}
	encoded, err := call.Encoded("params")
	if err != nil {
		return err
	}
	encoded = bytes.TrimSpace(encoded)
	var list []json.RawMessage
	var names map[string]json.RawMessage
	if json.Unmarshal(encoded, &list) != nil && json.Unmarshal(encoded, &names) != nil {
		return tool.ConfigErrorf("params must be a list of values for $1, $2, … or a map of values for :name")
	}
	if names != nil {
		return p.bindNames(names)
	}
	return p.bindList(list)
}

func (p *plan) bindNames(names map[string]json.RawMessage) (err error) {
	values := make(map[string]any, len(names))
	for k, v := range names {
		values[k] = argument{":" + k, v}
	}
	for i := range p.statements {
		s := &p.statements[i]
		var args []any
		if s.sent, args, err = sqltext.Named(s.Text, values); err != nil {
			return tool.ConfigErrorf("%s: %v", p.place(i, s.Line), err)
		}
		s.take(args)
	}
	return nil
}

func (s *statement) take(args []any) {
	for _, a := range args {
		s.args = append(s.args, a.(argument))
	}
}

func (p *plan) bindList(list []json.RawMessage) (err error) {
	values := make([]any, len(list))
	for i, v := range list {
		values[i] = argument{"$" + strconv.Itoa(i+1), v}
	}
	most := 0
	for i := range p.statements {
		s := &p.statements[i]
		if ownParameters(s) {
			continue
		}
		most = max(most, sqltext.Highest(s.Text))
		var args []any
		if s.sent, args, err = sqltext.Numbered(s.Text, values); err != nil {
			return tool.ConfigErrorf("%s: %v", p.place(i, s.Line), err)
		}
		s.take(args)
	}
	if most < len(values) {
		return tool.ConfigErrorf("params has %d values, but the SQL uses none beyond $%d", len(values), most)
	}
	return nil
}

// ownParameters tells that $1 in a statement is a matter of the statement: it
// makes something that will have parameters.
func ownParameters(s *statement) bool {
	if len(s.word) == 0 {
		return false
	}
	return s.word[0] == "PREPARE" || s.word[0] == "CREATE" && (sqltext.HasWords(s.Text, "FUNCTION") || sqltext.HasWords(s.Text, "PROCEDURE"))
}

// check refuses what cannot work here.
func (p *plan) check(i int) error {
	s := &p.statements[i]
	if len(s.word) == 0 {
		return nil
	}
	switch first := s.word[0]; {
	case first == "COPY" && (sqltext.HasWords(s.Text, "STDIN") || sqltext.HasWords(s.Text, "STDOUT")):
		return tool.ConfigErrorf("%s: COPY from or to a stream has no other end here; use the transfer tool, or INSERT and SELECT", p.place(i, s.Line))
	case !p.transaction && !p.readonly:
		return nil
	case controlsTransaction(s):
		field := "transaction"
		if p.readonly {
			field = "readonly"
		}
		return tool.ConfigErrorf("%s: %s has no place here, because %s: true runs all statements in one transaction; take one of them out", p.place(i, s.Line), first, field)
	}
	return nil
}

func controlsTransaction(s *statement) bool {
	switch s.word[0] {
	case "BEGIN", "START", "COMMIT", "END", "ABORT":
		return true
	case "ROLLBACK":
		return len(s.word) < 2 || s.word[1] != "TO" && !sqltext.HasWords(s.Text, "TO")
	case "PREPARE":
		return len(s.word) > 1 && s.word[1] == "TRANSACTION"
	}
	return false
}

// place names a statement for people.
func (p *plan) place(i, line int) string {
	if len(p.statements) == 1 {
		return fmt.Sprintf("the SQL, line %d", line)
	}
	return fmt.Sprintf("statement %d of %d, line %d", i+1, len(p.statements), line)
}

// searchPath is the schema to look names up in, or several with commas.
func searchPath(f tool.Fields, login *tool.Credential) (string, error) {
	name, err := f.String("schema")
	if err != nil {
		return "", err
	}
	if name == "" {
		name = login.Text(tool.PostgresNames["schema"]...)
	}
	var out []string
	for part := range strings.SplitSeq(name, ",") {
		if part = strings.Trim(strings.TrimSpace(part), `"`); part != "" {
			out = append(out, `"`+strings.ReplaceAll(part, `"`, `""`)+`"`)
		}
	}
	return strings.Join(out, ", "), nil
}
