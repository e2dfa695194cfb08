package playbook_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/playbook"
)

const (
	referenceFile = "../../docs/reference.md"
	generatedMark = "<!-- From here on written by: go test ./internal/playbook -run Reference -update -->\n\n"
)

func TestReferenceIsUpToDate(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := bytes.Cut(text, []byte(generatedMark))
	if !found {
		t.Fatalf("%s has no mark where the generated part begins", referenceFile)
	}
	want := playbook.Reference()
	if *update {
		whole := append(append(head, generatedMark...), want...)
		if err := os.WriteFile(referenceFile, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/reference.md is out of date; run go test ./internal/playbook -run Reference -update\n%s", diff)
	}
}
