package event

import (
	"encoding/json"
	"testing"
)

func TestResultReferencesSurviveTheirText(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"fetch":               "noetl://execution/612489553370251264/result/fetch/7",
		"two words/100%":      "noetl://execution/612489553370251264/result/two%20words%2F100%25/7",
		"/result/":            "noetl://execution/612489553370251264/result/%2Fresult%2F/7",
		"ü?&#":                "noetl://execution/612489553370251264/result/%C3%BC%3F&%23/7",
		"__command_context__": "noetl://execution/612489553370251264/result/__command_context__/7",
	} {
		ref := ResultRef{Execution: 612489553370251264, Name: name, ID: 7}
		if ref.String() != want {
			t.Errorf("%q is written %s, want %s", name, ref, want)
		}
		if got, err := ParseResultRef(want); err != nil || got != ref {
			t.Errorf("%s is read as %+v, %v", want, got, err)
		}
	}
	got, err := ParseResultRef("noetl://execution/1/result/a/b c/2")
	if err != nil || got != (ResultRef{Execution: 1, Name: "a/b c", ID: 2}) {
		t.Errorf("a decoded name is read as %+v, %v", got, err)
	}
}

func TestOtherTextsAreNoResultReferences(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "x", "noetl://execution/", "noetl://execution/1", "noetl://execution/1/result/", "noetl://execution/1/result/a",
		"noetl://execution/1/result//2", "noetl://execution/1/result/a/", "noetl://execution/1/result/a/b", "noetl://execution/x/result/a/2",
		"noetl://execution//result/a/2", "noetl://execution/1/result/%zz/2", "noetl://execution/-1/result/a/2", "noetl://execution/1/results/a/2",
		"http://execution/1/result/a/2", " noetl://execution/1/result/a/2", "noetl://tenant/project/results/1/step/0/0/1",
	} {
		if ref, err := ParseResultRef(s); err == nil || CodeOf(err) != Invalid {
			t.Errorf("%q is read as %+v, %v", s, ref, err)
		}
	}
}

func TestAStoredResultSaysThatItNeverExpires(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(StoredResult{Ref: "r", Store: "db", Scope: "execution", Bytes: 3, SHA256: "s"})
	if want := `{"ref":"r","store":"db","scope":"execution","bytes":3,"sha256":"s","expires_at":null}`; err != nil || string(b) != want {
		t.Errorf("written as %s, %v", b, err)
	}
}
