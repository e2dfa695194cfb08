package event_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1,"a":{"d":[1, 2],"c":null}}`:   `{"a":{"c":null,"d":[1,2]},"b":1}`,
		`{"é":1,"z":2,"Z":3,"":4}`:            `{"":4,"Z":3,"z":2,"é":1}`,
		`{"a":1,"a":2}`:                       `{"a":2}`,
		` [ ] `:                               `[]`,
		`true`:                                `true`,
		`1`:                                   `1`,
		`-0`:                                  `-0.0`,
		`0`:                                   `0`,
		`0.0`:                                 `0.0`,
		`-0.0`:                                `-0.0`,
		`1.0`:                                 `1.0`,
		`1.50`:                                `1.5`,
		`9223372036854775807`:                 `9223372036854775807`,
		`-9223372036854775808`:                `-9223372036854775808`,
		`-9223372036854775809`:                `-9.223372036854776e18`,
		`18446744073709551615`:                `18446744073709551615`,
		`18446744073709551616`:                `1.8446744073709552e19`,
		`1e15`:                                `1000000000000000.0`,
		`1e16`:                                `1e16`,
		`1234567890123456.7`:                  `1234567890123456.8`,
		`12345678901234567.0`:                 `1.2345678901234568e16`,
		`0.00001`:                             `0.00001`,
		`0.000001`:                            `1e-6`,
		`0.0000012`:                           `1.2e-6`,
		`1E+21`:                               `1e21`,
		`100e-2`:                              `1.0`,
		`5e-324`:                              `5e-324`,
		`1e400`:                               `1e400`,
		`123.456`:                             `123.456`,
		`"\u003c>&\u2028\u007f\/é"`:           "\"<>&\u2028\u007f/é\"",
		`"\b\f\n\r\t\u0000\u001f\"\\"`:        `"\b\f\n\r\t\u0000\u001f\"\\"`,
		`"\ud83d\ude00"`:                      `"😀"`,
		"{\"a\" :\n\t[ 1.0 ,\"x\" , false ]}": `{"a":[1.0,"x",false]}`,
	} {
		got, err := event.Canonical([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{``, `{`, `1 2`, `{"a":1}x`, `nul`, `01`, strings.Repeat("[", 20000)} {
		if got, err := event.Canonical([]byte(in)); event.CodeOf(err) != event.Invalid {
			t.Errorf("%.20q becomes %s, %v", in, got, err)
		}
	}
}

// FuzzCanonical holds the encoder to one text per value, with sorted members
// and nothing lost.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":[1,2.50,-0],"a":"\u2028<"}`, `1e16`, `"\u0000"`, `[{},[],null,true]`, `18446744073709551616`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := event.Canonical(raw)
		if err != nil {
			if json.Valid(raw) {
				t.Fatalf("%q is JSON and refused: %v", raw, err)
			}
			return
		}
		twice, err := event.Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q becomes %q, then %q, %v", raw, once, twice, err)
		}
		var before, after any
		if json.Unmarshal(raw, &before) == nil && (json.Unmarshal(once, &after) != nil || !reflect.DeepEqual(before, after)) {
			t.Fatalf("%q means %v, %q means %v", raw, before, once, after)
		}
		sortedMembers(t, json.NewDecoder(bytes.NewReader(once)))
	})
}

// sortedMembers reads one value and complains of members out of order.
func sortedMembers(t *testing.T, d *json.Decoder) {
	tok, err := d.Token()
	if err != nil && strings.Contains(err.Error(), "range") {
		t.Skip("a number no double holds")
	}
	if delim, ok := tok.(json.Delim); ok {
		last := ""
		for n := 0; d.More(); n++ {
			if delim == '{' {
				key, _ := d.Token()
				if k := key.(string); n > 0 && k <= last {
					t.Fatalf("member %q comes after %q", k, last)
				} else {
					last = k
				}
			}
			sortedMembers(t, d)
		}
		_, _ = d.Token()
	}
}
