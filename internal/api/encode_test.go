package api

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
)

// fill sets every field of a struct to something, so that a field the encoder
// forgets shows up as a difference.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"a":"<b>"}`))
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.Kind() == reflect.Interface:
		return
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.String:
		v.SetString("text \"quoted\" \x01 é")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(612489553370251264)
	}
}

func TestCommandEncoderWritesWhatItsTagsSay(t *testing.T) {
	t.Parallel()
	var full event.Command
	fill(reflect.ValueOf(&full).Elem())
	for name, c := range map[string]event.Command{"full": full, "empty": {}} {
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		got := appendCommand(nil, &c)
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil {
			t.Fatalf("%s: not JSON: %s", name, got)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s (-encoding/json +ours):\n%s", name, diff)
		}
	}
}

func TestMetaCarriesTheCommandIDExactlyOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ meta, id, want string }{
		{``, ``, `null`},
		{``, `c`, `{"command_id":"c"}`},
		{`null`, `c`, `{"command_id":"c"}`},
		{`{}`, `c`, `{"command_id":"c"}`},
		{`{ }`, `c`, `{"command_id":"c"}`},
		{` {"a":1}`, `c`, `{"command_id":"c","a":1}`},
		{`{"command_id":"d"}`, `c`, `{"command_id":"d"}`},
		{`{"inner":{"command_id":"d"}}`, `c`, `{"command_id":"c","inner":{"command_id":"d"}}`},
		{`[1]`, `c`, `[1]`},
		{`{"a":1}`, ``, `{"a":1}`},
	} {
		if got := string(appendMeta(nil, json.RawMessage(tc.meta), tc.id)); got != tc.want {
			t.Errorf("meta %s, command %q: %s, want %s", tc.meta, tc.id, got, tc.want)
		}
	}
}

func FuzzStringsSurviveEncoding(f *testing.F) {
	f.Add("plain")
	f.Add("\"\\\n\r\t\x00\x1f\u2028é\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if utf8.ValidString(s) && got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

func BenchmarkAppendEvent(b *testing.B) {
	var e event.Event
	fill(reflect.ValueOf(&e).Elem())
	e.CommandID = "612489553370251264:fetch:612489553370251265"
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = numberIDs.appendEvent(buf[:0], &e)
	}
	b.SetBytes(int64(len(buf)))
}
