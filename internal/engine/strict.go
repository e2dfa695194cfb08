package engine

import (
	"encoding/json"
	"fmt"

	"github.com/noetl/noetl-go/internal/jinja"
)

// Undeclared warns of the keys of a payload that the playbook's workload does
// not have, when the playbook asks for it with metadata.strict_workload.
func (p *Program) Undeclared(payload json.RawMessage) []string {
	if !p.pb.Metadata.StrictWorkload || len(payload) == 0 {
		return nil
	}
	v, err := jinja.FromJSON(payload)
	d, ok := v.(*jinja.Dict)
	if err != nil || !ok {
		return nil
	}
	var out []string
	for _, k := range d.Keys() {
		if _, declared := p.pb.Workload.Get(k); !declared {
			out = append(out, fmt.Sprintf("payload.%s is not among the playbook's inputs", k))
		}
	}
	return out
}
