package duckdb

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/source"
	"github.com/noetl/noetl-go/internal/tool/sqltext"
)

// plan is what the author asked for.
type plan struct {
	f          tool.Fields
	statements []sqltext.Statement
	list       []any          // params by number
	named      map[string]any // params by name
	database   string
	asObjects  bool
	autoSecret bool
}

func readPlan(ctx context.Context, call *tool.Call) (*plan, error) {
	f := call.Fields()
	p := &plan{f: f}
	text, err := sqlText(ctx, call, f)
	if err != nil {
		return nil, err
	}
	// DuckDB calls Google's storage gs; older playbooks write gcs.
	p.statements = sqltext.Split(strings.ReplaceAll(text, "gcs://", "gs://"))
	if len(p.statements) == 0 {
		return nil, tool.ConfigErrorf("there is no SQL to run; write it under query, commands or command")
	}
	if err := p.readParams(f); err != nil {
		return nil, err
	}
	if p.database, err = f.String("database", "db_path"); err != nil {
		return nil, err
	}
	if p.asObjects, err = f.Bool(true, "as_objects"); err != nil {
		return nil, err
	}
	if p.autoSecret, err = f.Bool(true, "auto_secrets"); err != nil {
		return nil, err
	}
	return p, p.checkPromises(f)
}

// sqlText finds the SQL under the names that authors use. A list is joined, one
// entry after the other.
func sqlText(ctx context.Context, call *tool.Call, f tool.Fields) (string, error) {
	if script, err := f.Object("script"); err != nil {
		return "", err
	} else if script != nil {
		return source.Load(ctx, call, script)
	}
	if name, v, ok := f.First("query_b64", "command_b64", "commands_b64"); ok {
		text, err := tool.Text(v)
		if err != nil {
			return "", err
		}
		plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			return "", tool.ConfigErrorf("%s is not base64: %v", name, err)
		}
		return string(plain), nil
	}
	name, v, ok := f.First("query", "queries", "command", "commands", "cmd", "cmds")
	if !ok {
		return "", nil
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	var all strings.Builder
	for i, one := range list {
		text, isText := one.(string)
		if !isText {
			return "", tool.ConfigErrorf("%s[%d] must be SQL text", name, i)
		}
		all.WriteString(text)
		if len(list) > 1 && !strings.HasSuffix(strings.TrimSpace(text), ";") {
			all.WriteString("\n;")
		}
		all.WriteString("\n")
	}
	return all.String(), nil
}

func (p *plan) readParams(f tool.Fields) error {
	name, v, ok := f.First("params")
	if !ok {
		return nil
	}
	switch v := v.(type) {
	case []any:
		p.list = v
	case map[string]any:
		p.named = v
	default:
		return tool.ConfigErrorf("%s must be a list for $1, $2, … or a map for :name", name)
	}
	return nil
}

// checkPromises looks at fields that say something about the SQL.
func (p *plan) checkPromises(f tool.Fields) error {
	affinity, err := f.String("affinity")
	if err != nil {
		return err
	}
	if affinity != "" && !strings.EqualFold(affinity, "execution") {
		return tool.ConfigErrorf("affinity must be execution, not %q", affinity)
	}
	must, err := f.Bool(false, "require_cloud_output")
	if err != nil || !must {
		return err
	}
	for _, s := range p.statements {
		if sqltext.HasWords(s.Text, "COPY") && sqltext.HasWords(s.Text, "TO") && hasCloudURL(s.Text) {
			return nil
		}
	}
	return tool.ConfigErrorf("require_cloud_output is set, but no statement copies to cloud storage; write COPY … TO 'gs://bucket/…' or drop the field")
}

func hasCloudURL(text string) bool {
	for _, scheme := range []string{"gs://", "s3://", "r2://", "az://", "azure://", "abfss://"} {
		if strings.Contains(text, scheme) {
			return true
		}
	}
	return false
}

// bind gives the text of a statement as DuckDB takes it, and the values for it.
func (p *plan) bind(text string) (string, []any, error) {
	var args []any
	var err error
	switch {
	case p.named != nil:
		text, args, err = sqltext.Named(text, p.named)
	case p.list != nil && sqltext.Highest(text) > 0:
		text, args, err = sqltext.Numbered(text, p.list)
	case p.list != nil: // written as ?
		args = p.list
	}
	if err != nil {
		return "", nil, tool.ConfigErrorf("params: %v", err)
	}
	out := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case map[string]any, []any: // cast it in SQL: $1::JSON, $1::INTEGER[]
			text, err := tool.Text(a)
			if err != nil {
				return "", nil, err
			}
			out[i] = text
		default:
			out[i] = a
		}
	}
	return text, out, nil
}

// secrets finds the credentials that become DuckDB secrets.
func (p *plan) secrets(ctx context.Context, call *tool.Call) (map[string]*tool.Credential, error) {
	if !p.autoSecret {
		return nil, nil
	}
	found, err := call.Logins(ctx, p.f)
	if err != nil {
		return nil, err
	}
	alias, err := p.f.String("gcs_credential")
	if err != nil || alias == "" {
		return found, err
	}
	gcs, err := call.Login(ctx, tool.Fields{"auth": alias})
	if err != nil {
		return nil, err
	}
	all := map[string]*tool.Credential{"gcs_credential": gcs}
	for name, c := range found {
		all[name] = c
	}
	return all, nil
}
