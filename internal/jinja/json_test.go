package jinja_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/jinja"
)

func TestJSONSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`null`, `true`, `false`, `0`, `-1`, `9223372036854775807`, `-9223372036854775808`, `4.0`, `0.1`, `1e+16`, `1e-05`,
		`""`, `"a\"\\\n\r\t\u0001é😀<>&"`, `"\u2028"`, `[]`, `{}`, `[1,[2,{"z":1,"a":[null]}]]`, `{"b":1,"a":{"d":2,"c":3}}`,
	} {
		v, err := jinja.FromJSON([]byte(s))
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		got, err := jinja.ToJSON(v)
		if string(got) != s || err != nil {
			t.Errorf("got %s, %v\nwant %s", got, err, s)
		}
	}
}

func TestJSONNumbersKeepTheirKind(t *testing.T) {
	t.Parallel()
	v, err := jinja.FromJSON([]byte(` [ 7300000000000000001 , 4.0 , 1e2, -0, 9223372036854775808 ] `))
	if err != nil {
		t.Fatal(err)
	}
	want := []any{int64(7300000000000000001), 4.0, 100.0, int64(0), 9223372036854775808.0}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
}

func TestJSONEscapesAreRead(t *testing.T) {
	t.Parallel()
	v, err := jinja.FromJSON([]byte(`"\u00e9\ud83d\ude00\ud83dx\/\b\f` + "\xff" + `"`))
	if want := "é😀\ufffdx/\b\f\ufffd"; v != want || err != nil {
		t.Errorf("got %q, %v\nwant %q", v, err, want)
	}
}

func TestWhatIsNotJSONIsRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		``, ` `, `nul`, `tru e`, `01`, `1.`, `.5`, `-`, `+1`, `1e`, `1e999`, `"`, `"a`, `"\x"`, `"\u12"`, "\"\n\"", `[`, `[1`, `[1,]`,
		`[1 2]`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `1 2`, `{}x`, `NaN`, strings.Repeat("[", 100_000),
	} {
		if v, err := jinja.FromJSON([]byte(s)); err == nil {
			t.Errorf("%.40q: got %v", s, v)
		}
	}
}

func TestWhatHasNoJSONIsRefused(t *testing.T) {
	t.Parallel()
	cycle := []any{nil}
	cycle[0] = cycle
	for _, v := range []any{math.NaN(), math.Inf(1), []any{math.Inf(-1)}, make(chan int), cycle, json.RawMessage(`{`)} {
		if b, err := jinja.ToJSON(v); err == nil {
			t.Errorf("%T: got %s", v, b)
		}
	}
}

func TestSortedJSONSortsAtEveryDepth(t *testing.T) {
	t.Parallel()
	v, _ := jinja.FromJSON([]byte(`{"b":[{"z":1,"y":2}],"a":{"d":1,"c":2}}`))
	got, err := jinja.SortedJSON(map[string]any{"v": v, "raw": json.RawMessage(`{"b": 1, "a": 2}`), "u": jinja.Undefined{}})
	want := `{"raw":{"a":2,"b":1},"u":null,"v":{"a":{"c":2,"d":1},"b":[{"y":2,"z":1}]}}`
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	if b, _ := jinja.ToJSON(v); string(b) != `{"b":[{"z":1,"y":2}],"a":{"d":1,"c":2}}` {
		t.Errorf("sorting changed the value: %s", b)
	}
}

func TestDictKeepsTheOrderOfInsertion(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 100} { // below and above the size that is indexed
		d := jinja.NewDict(0)
		var want []string
		for i := n; i > 0; i-- {
			d.Set(fmt.Sprint(i), i)
			want = append(want, fmt.Sprint(i))
		}
		d.Set("2", "again")
		if diff := cmp.Diff(want, d.Keys()); diff != "" {
			t.Error(diff)
		}
		copied := d.Clone()
		d.Delete("2")
		d.Delete("nope")
		if _, ok := d.Get("2"); ok || d.Len() != n-1 {
			t.Errorf("2 is still there, or the length is wrong: %d", d.Len())
		}
		if v, _ := copied.Get("2"); v != "again" || copied.Len() != n {
			t.Errorf("the copy changed: %v, %d", v, copied.Len())
		}
		for i := n; i > 2; i-- {
			if v, ok := d.Get(fmt.Sprint(i)); !ok || v != i {
				t.Errorf("%d: got %v, %v", i, v, ok)
			}
		}
	}
}

func TestDictIsJSONToTheStandardLibrary(t *testing.T) {
	t.Parallel()
	var v struct{ D *jinja.Dict }
	const text = `{"D":{"b":{"z":1,"a":2},"a":[]}}`
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(v)
	if string(got) != text || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"D":[1]}`), &v); err == nil {
		t.Error("a list was read as a mapping")
	}
	var none *jinja.Dict
	if _, ok := none.Get("a"); ok || none.Len() != 0 || len(none.Keys()) != 0 {
		t.Error("a nil Dict is not empty")
	}
}
