package control_test

import (
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// What a tool returns may look like a reference to a value. It is data all the
// same, in the execution that ran it and in those that take it over.
func TestDataThatLooksLikeAReferenceIsData(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, carried)
		var runs []string
		lookalike := `{"n":7,"reference":{"ref":"noetl://execution/1/result/x/2"},"context":{"reference":{"ref":"noetl://execution/1/result/x/3"}},
			"result":{"reference":{"ref":"noetl://execution/1/result/x/4"}}}`
		data := map[string]string{"start": lookalike, "end": `{}`}
		r.employ(&crew{r: r, id: "w", eager: 1, planes: []*control.Plane{p.Plane}, says: doing(data, &runs)}, 1)
		id := r.start(p, "test/carried")
		r.await(p, id)
		data["work"] = lookalike
		a, err := p.Rerun(t.Context(), id, control.RerunRequest{FromStep: "work"})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, a.ExecutionID)
		for _, id := range []event.ID{id, a.ExecutionID} {
			got, err := control.Verify(t.Context(), control.VerifyOptions{Store: r.store, Execution: id})
			if err != nil || !got.Clean {
				t.Errorf("execution %s: %+v, %v", id, got.Differences, err)
			}
		}
	})
}
