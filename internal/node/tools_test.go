package node

import (
	"testing"

	"github.com/noetl/noetl-go/internal/tool/schema"
)

func TestEveryToolOfAWorkerHasASchema(t *testing.T) {
	t.Parallel()
	tools, err := newToolbox(nil, processOptions{}, Outbound{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tools.close() })
	if len(tools.set) < 4 {
		t.Fatalf("a worker has %d tools, there are more", len(tools.set))
	}
	for kind := range tools.set {
		k, ok := schema.Lookup(kind)
		if !ok {
			t.Errorf("no schema declares tools of kind %s", kind)
		} else if k.NoWorker != "" {
			t.Errorf("the schema of %s says that no worker runs it", kind)
		}
	}
}
