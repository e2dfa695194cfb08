package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestPayloadsWrittenByHandLoseNothing fails when a field is added that the
// encoders without reflection do not know.
func TestPayloadsWrittenByHandLoseNothing(t *testing.T) {
	t.Parallel()
	three := 3
	for _, want := range []*issueDetail{
		{Gen: 1, MaxAttempts: 3},
		{Gen: 1, MaxAttempts: 3, Trace: json.RawMessage(`{"traceparent":"00-1-2-01"}`)},
		{Gen: 2, Index: &three, MaxAttempts: 5, Attempt: 1, LeaseUntil: time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC)},
	} {
		byReflection, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(byReflection), string(encode(want))); diff != "" {
			t.Errorf("command.issued (-reflection +by hand):\n%s", diff)
		}
		var got issueDetail
		if err := json.Unmarshal(encode(want), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, &got, cmpopts.IgnoreUnexported(issueDetail{})); diff != "" {
			t.Errorf("command.issued read back:\n%s", diff)
		}
	}
	enter := &enterDetail{Gen: 7}
	if byReflection, err := json.Marshal(enter); err != nil || string(byReflection) != string(encode(enter)) {
		t.Errorf("step.enter is %s by reflection and %s by hand", byReflection, encode(enter))
	}
}
