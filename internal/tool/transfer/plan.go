package transfer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// plan is what the author asked for.
type plan struct {
	source, target *end
	mapping        []pair
	mode           string
	key            []string
	chunk          int
	checkpoint     bool
}

// pair is one line of a mapping.
type pair struct{ column, field string }

// end is one side of a transfer: its fields, and what kind of system it is.
type end struct {
	tool.Fields
	kind     string
	database string // of DuckDB: the file
}

func readPlan(call *tool.Call) (*plan, error) {
	f := call.Fields()
	p := &plan{}
	var err error
	if p.source, err = readEnd(f, "source"); err != nil {
		return nil, err
	}
	if p.target, err = readEnd(f, "target"); err != nil {
		return nil, err
	}
	if err := p.checkKinds(); err != nil {
		return nil, err
	}
	if err := p.readMode(f); err != nil {
		return nil, err
	}
	if err := p.readChunks(f); err != nil {
		return nil, err
	}
	return p, p.readMapping(call, f)
}

// base64 tells that bytes come as text: files and services have no other way.
func (p *plan) base64() bool { return p.source.kind != "postgres" && p.source.kind != "duckdb" }

func readEnd(f tool.Fields, which string) (*end, error) {
	m, err := f.Object(which)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, tool.ConfigErrorf("%s is missing; write {type: postgres, …}", which)
	}
	e := &end{Fields: m}
	if e.kind, err = e.String("type", "tool", "kind"); err != nil {
		return nil, err
	}
	e.kind = strings.ToLower(e.kind)
	if e.kind == "" {
		return nil, tool.ConfigErrorf("%s.type is missing; it says what system it is", which)
	}
	if same, ok := otherNames[e.kind]; ok {
		e.kind = same
	}
	return e, nil
}

// otherNames are spellings that mean the same system.
var otherNames = map[string]string{"postgresql": "postgres", "pg": "postgres", "https": "http", "api": "http", "jsonl": "ndjson", "ref": "result"}

func (p *plan) checkKinds() error {
	if sources[p.source.kind] == nil {
		return unknownKind("source", p.source.kind, tool.SortedKeys(sources))
	}
	if targets[p.target.kind] == nil {
		return unknownKind("target", p.target.kind, tool.SortedKeys(targets))
	}
	return nil
}

func unknownKind(which, kind string, known []string) error {
	if kind == "snowflake" {
		return tool.ConfigErrorf("%s.type snowflake is not available in this build; unload to a file or copy through postgres, duckdb or http", which)
	}
	return tool.ConfigErrorf("%s.type %q is not known; use one of %s", which, kind, strings.Join(known, ", "))
}

func (p *plan) readMode(f tool.Fields) error {
	mode, err := f.String("mode")
	if err != nil {
		return err
	}
	if mode == "" {
		if mode, err = p.target.String("mode"); err != nil {
			return err
		}
	}
	if p.mode = strings.ToLower(mode); p.mode == "" {
		p.mode = "append"
	}
	if !slices.Contains([]string{"append", "replace", "upsert"}, p.mode) {
		return tool.ConfigErrorf("mode must be append, replace or upsert, not %q", mode)
	}
	if p.key, err = columnNames(f, "key"); err != nil {
		return err
	}
	if p.key == nil {
		if p.key, err = columnNames(p.target.Fields, "key"); err != nil {
			return err
		}
	}
	if p.mode == "upsert" && len(p.key) == 0 {
		return tool.ConfigErrorf("mode upsert needs key: the columns that tell one row from another")
	}
	return nil
}

// columnNames is a field that is one name, several with commas, or a list.
func columnNames(f tool.Fields, field string) ([]string, error) {
	_, v, ok := f.First(field)
	if !ok {
		return nil, nil
	}
	var parts []string
	switch v := v.(type) {
	case string:
		parts = strings.Split(v, ",")
	case []any:
		for _, one := range v {
			text, isText := one.(string)
			if !isText {
				return nil, tool.ConfigErrorf("%s must be a list of column names", field)
			}
			parts = append(parts, text)
		}
	default:
		return nil, tool.ConfigErrorf("%s must be a column name or a list of them", field)
	}
	var out []string
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out, nil
}

func (p *plan) readChunks(f tool.Fields) error {
	p.chunk = 1000
	if name, v, ok := f.First("chunk_size"); ok {
		n, isInt := v.(int64)
		if text, err := tool.Text(v); !isInt && err == nil {
			isInt = json.Unmarshal([]byte(text), &n) == nil
		}
		if !isInt || n < 1 || n > 1_000_000 {
			return tool.ConfigErrorf("%s must be a whole number from 1 to 1000000", name)
		}
		p.chunk = int(n)
	}
	var err error
	p.checkpoint, err = f.Bool(false, "checkpoint")
	return err
}

// readMapping finds the mapping of the call or of the target, in the order in
// which its author wrote it.
func (p *plan) readMapping(call *tool.Call, f tool.Fields) error {
	where, m := "mapping", f
	found, err := m.Object("mapping")
	if err == nil && found == nil {
		where, m = "target.mapping", p.target.Fields
		found, err = m.Object("mapping")
	}
	if err != nil || found == nil {
		return err
	}
	order, err := orderOf(call, where)
	if err != nil || len(order) != len(found) {
		order = tool.SortedKeys(found)
	}
	for _, column := range order {
		field, isText := found[column].(string)
		if !isText || field == "" {
			return tool.ConfigErrorf("%s.%s must name a field of the source", where, column)
		}
		p.mapping = append(p.mapping, pair{column, field})
	}
	if len(p.mapping) == 0 {
		return tool.ConfigErrorf("%s is empty; name at least one column, or leave it out", where)
	}
	return nil
}

// orderOf lists the keys of an object of the config as they were written.
func orderOf(call *tool.Call, where string) ([]string, error) {
	var raw json.RawMessage
	var err error
	if where == "mapping" {
		raw, err = call.Encoded("mapping")
	} else {
		raw, err = call.Encoded("target")
	}
	if err != nil {
		return nil, err
	}
	members, err := membersOf(json.NewDecoder(bytes.NewReader(raw)))
	if err != nil {
		return nil, err
	}
	if where != "mapping" {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == "mapping" })
		if i < 0 {
			return nil, nil
		}
		if members, err = membersOf(json.NewDecoder(bytes.NewReader(members[i].value))); err != nil {
			return nil, err
		}
	}
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.name
	}
	return out, nil
}
