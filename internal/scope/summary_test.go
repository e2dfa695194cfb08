package scope

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/jinja"
)

func TestSummariesKeepTheStructure(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 513)
	for _, tc := range []struct {
		name, data string
		selected   []Selection
		want       string
	}{
		{"scalars stay", `{"n":1.0,"t":"text","b":true,"z":null}`, nil, `{"n":1.0,"t":"text","b":true,"z":null}`},
		{"long texts become their length", `{"t":"` + long + `","s":"` + long[1:] + `"}`, nil, `{"t":{"_len":513},"s":"` + long[1:] + `"}`},
		{"lists keep their first element", `{"l":[{"a":1},{"a":2}],"e":[]}`, nil, `{"l":[{"a":1}],"e":[]}`},
		{"a list on its own", `[[1,2],[3]]`, nil, `[[1]]`},
		{"a scalar on its own", `7`, nil, `7`},
		{"too deep: a map", nest(7, `{"a":{"k":1,"b":2}}`), nil, nest(7, `{"a":{"_count":2,"_keys":["b","k"]}}`)},
		{"too deep: a list", nest(7, `{"a":[1,2,3]}`), nil, nest(7, `{"a":{"_count":3}}`)},
		{
			"selected parts stand beside it", `{"rows":[1,2],"deep":{"x":[3,4]}}`,
			[]Selection{{Path: []string{"rows"}, As: "rows"}, {Path: []string{"deep", "x", "1"}, As: "last"}, {Path: []string{"deep", "y"}, As: "no"}},
			`{"rows":[1],"deep":{"x":[3]},"_selected":{"rows":[1,2],"last":4}}`,
		},
		{"a selected part that is too large", `{"rows":["` + strings.Repeat("y", selectedBytes) + `"]}`, []Selection{{Path: []string{"rows"}, As: "rows"}}, `{"rows":[{"_len":16384}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := string(Summarise(json.RawMessage(tc.data), tc.selected)); got != tc.want {
				t.Errorf("the summary is\n%s, want\n%s", got, tc.want)
			}
		})
	}
}

func nest(n int, inner string) string {
	return strings.Repeat(`{"a":`, n) + inner + strings.Repeat("}", n)
}

func TestSelectionsOfASequenceReachBelowTheLabels(t *testing.T) {
	t.Parallel()
	got := string(SummariseSequence(json.RawMessage(`{"make":{"count":3,"rows":[1,2]}}`), []Selection{{Path: []string{"rows"}, As: "rows"}}))
	if want := `{"make":{"count":3,"rows":[1]},"_selected":{"rows":[1,2]}}`; got != want {
		t.Errorf("the summary is %s, want %s", got, want)
	}
}

// TestASummaryAnswersAsTheWholeDoes makes random data and reads it through its
// summary: every path gives what it gives in the whole, and the summary keeps
// its bounds.
func TestASummaryAnswersAsTheWholeDoes(t *testing.T) {
	t.Parallel()
	cut, fetched := 0, 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		data := "{" + randomEntries(r, 0) + "}"
		summary := Summarise(json.RawMessage(data), nil)
		if len(summary) > summaryBytes {
			t.Fatalf("seed %d: the summary has %d bytes:\n%s", seed, len(summary), summary)
		}
		if strings.Contains(string(summary), markTruncated) {
			cut++
		}
		whole := Step(json.RawMessage(data), Info{})
		short := Step(summary, Info{Ref: &Reference{Ref: "r"}}).Bound(func(*Reference) json.RawMessage { fetched++; return json.RawMessage(data) })
		for range 40 {
			expr := "s"
			for range 1 + r.IntN(4) {
				expr += fmt.Sprintf(".k%d", r.IntN(12))
			}
			if a, b := read(t, expr, whole), read(t, expr, short); a != b {
				t.Fatalf("seed %d: %s is %s in the whole and %s through the summary\n%s\n%s", seed, expr, a, b, data, summary)
			}
		}
	}
	if cut == 0 || cut == 100 || fetched == 0 {
		t.Errorf("%d of 100 summaries were cut, %d looks at the whole; the test shows little", cut, fetched)
	}
}

// TestLargeResultsOfALoopAreWhole reads a loop's results, one of them kept
// elsewhere, as the control plane holds them and as workers do.
func TestLargeResultsOfALoopAreWhole(t *testing.T) {
	t.Parallel()
	const summarised, whole = `[{"t":"a"},{"t":{"_len":3}}]`, `[{"t":"a"},{"t":"bbb"}]`
	decoded, err := jinja.FromJSON(json.RawMessage(summarised))
	if err != nil {
		t.Fatal(err)
	}
	info := Info{Loop: &Loop{Total: 2, Success: 2, Refs: map[int]Reference{1: {Ref: "r"}}}}
	fetch := func(*Reference) json.RawMessage { return json.RawMessage(`{"t":"bbb"}`) }
	for name, v := range map[string]*Value{"encoded": Step(json.RawMessage(summarised), info), "decoded": Step(decoded, info)} {
		for expr, want := range map[string]string{"s": whole, "s.results": whole, "s[1].t": `"bbb"`, "s | map(attribute='t') | list": `["a","bbb"]`} {
			if got := read(t, expr, v.Bound(fetch)); got != want {
				t.Errorf("%s: %s is %s, want %s", name, expr, got, want)
			}
		}
	}
}

func read(t *testing.T, expr string, v *Value) string {
	t.Helper()
	tpl, err := jinja.Compile("{{ " + expr + " }}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := tpl.Value(jinja.Vars{"s": v})
	if err != nil {
		t.Fatal(err)
	}
	b, err := jinja.ToJSON(got)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func randomEntries(r *rand.Rand, depth int) string {
	var out []string
	for i := range r.IntN(12) {
		out = append(out, fmt.Sprintf(`"k%d":%s`, i, randomValue(r, depth+1)))
	}
	return strings.Join(out, ",")
}

func randomValue(r *rand.Rand, depth int) string {
	switch n := r.IntN(8); {
	case n == 0:
		return fmt.Sprint(r.IntN(1000))
	case n == 1:
		return `"` + strings.Repeat("ab<", r.IntN(300)) + `"`
	case n == 2:
		return `null`
	case n == 3 && depth < 10:
		return "[" + randomValue(r, depth+1) + "," + randomValue(r, depth+1) + "]"
	case n >= 4 && depth < 5:
		return "{" + randomEntries(r, depth) + "}"
	}
	return `[]`
}

func TestPartsHaveTheNamesTheirAuthorGave(t *testing.T) {
	t.Parallel()
	data := `{"a":{"b":[1,2]},"n":1}`
	info := Info{Select: []Selection{{Path: []string{"a", "b"}, As: "pair"}, {Path: []string{"a"}, As: "n"}}}
	inline := Step(json.RawMessage(data), info)
	info.Ref = &Reference{Ref: "r"}
	fetched := 0
	fetch := func(*Reference) json.RawMessage { fetched++; return json.RawMessage(data) }
	kept := Step(Summarise(json.RawMessage(data), info.Select[:1]), info).Bound(fetch)
	cut := Step(json.RawMessage(`{"a":{"b":[1]},"n":1}`), info).Bound(fetch) // it was too large to be selected
	for name, v := range map[string]*Value{"inline": inline, "kept elsewhere": kept, "too large": cut} {
		if got := read(t, "[s.pair[1], s.n]", v); got != `[2,1]` {
			t.Errorf("%s: %s", name, got)
		}
	}
	if fetched != 1 {
		t.Errorf("%d looks at the whole, want one for the part that was too large", fetched)
	}
}

// TestTheFirstItemOfAListIsAtHand reads what a summary holds without a look at
// the whole, and the rest with one.
func TestTheFirstItemOfAListIsAtHand(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		data, expr, want string
		fetched          bool
	}{
		{`{"rows":[{"id":1,"deep":[{"x":2}]},{"id":3}]}`, "[s.rows[0].id, s.data.rows[0].deep[0].x]", `[1,2]`, false},
		{`{"rows":[{"id":1},{"id":3}]}`, "s.rows[1].id", `3`, true},
		{`{"rows":[{"id":1},{"id":3}]}`, "s.rows[-1].id", `3`, true},
		{`{"rows":[{"id":1},{"id":3}]}`, "s.rows | length", `2`, true},
		{`{"rows":[{"id":1,"n":[5,6]},{"id":3}]}`, "s.rows[0]", `{"id":1,"n":[5,6]}`, true},
		{`[{"id":1},{"id":2}]`, "s[0].id", `1`, false},
		{`[{"id":1},{"id":2}]`, "s[1].id", `2`, true},
		{`{"rows":[]}`, "s.rows[0] is defined", `false`, false},
	} {
		fetched := false
		fetch := func(*Reference) json.RawMessage { fetched = true; return json.RawMessage(tc.data) }
		v := Step(Summarise(json.RawMessage(tc.data), nil), Info{Ref: &Reference{Ref: "r"}}).Bound(fetch)
		if got := read(t, tc.expr, v); got != tc.want || fetched != tc.fetched {
			t.Errorf("%s of %s is %s, fetched %t; want %s, %t", tc.expr, tc.data, got, fetched, tc.want, tc.fetched)
		}
	}
}
