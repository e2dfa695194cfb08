package engine

import (
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
)

// workloadOf is what an execution runs with: the playbook's defaults, their
// templates evaluated, with the payload's top-level keys in place of theirs.
func workloadOf(p *Program, in StartInput) (*jinja.Dict, error) {
	given, err := payloadOf(in.Payload)
	if err != nil {
		return nil, err
	}
	out := p.pb.Workload.Clone()
	for k, v := range given.All() {
		out.Set(k, v)
	}
	if len(p.pb.Rendered) == 0 {
		return out, nil
	}
	s := NewState(in.ExecutionID)
	s.workload, s.catalogID, s.path, s.version = out, in.CatalogID, in.Path, in.Version
	scope := names{s: s, extra: startNames(in, given, out)}
	// In document order, so that a value sees those above it evaluated. What
	// the payload gives is data, never a template.
	for _, a := range p.pb.Rendered {
		if _, replaced := given.Get(a.Key); replaced {
			continue
		}
		v, err := a.Value.Eval(scope)
		if err != nil {
			return nil, &event.Error{
				Code: event.Invalid, Reason: "workload_template", Err: err,
				Message: "workload." + a.Key + " cannot be evaluated: " + err.Error(),
				Remedy:  "give " + a.Key + " in the payload, or add | default(…)",
			}
		}
		out.Set(a.Key, v)
	}
	return out, nil
}

// startNames are the names that only the templates of a workload see. A key of
// the workload goes before one of them.
func startNames(in StartInput, given, workload *jinja.Dict) jinja.Vars {
	environ := jinja.NewDict(len(in.Environ))
	for _, k := range sortedKeys(in.Environ) {
		environ.Set(k, in.Environ[k])
	}
	vars := jinja.Vars{"env": environ, "payload": given}
	for name := range vars {
		if _, taken := workload.Get(name); taken {
			delete(vars, name)
		}
	}
	return vars
}

func payloadOf(payload json.RawMessage) (*jinja.Dict, error) {
	if len(payload) == 0 {
		return jinja.NewDict(0), nil
	}
	v, err := jinja.FromJSON(payload)
	if err != nil {
		return nil, event.Errorf(event.Invalid, "payload is not JSON: %v", err)
	}
	switch d := v.(type) {
	case nil:
		return jinja.NewDict(0), nil
	case *jinja.Dict:
		return d, nil
	}
	return nil, event.Errorf(event.Invalid, "payload must be a JSON object, got: %s", jsonType(v))
}
