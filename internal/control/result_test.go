package control_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

func TestAResultIsPutAsideAndFoundByItsReference(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		data := json.RawMessage(`{ "n": 9007199254740993, "x": "ü" }`)
		first, err := p.PutResult(t.Context(), id, "my step/1", data)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if first.Bytes != int64(len(data)) || first.SHA256 != hex.EncodeToString(sum[:]) || first.Store != "db" || first.Scope != "execution" || first.ExpiresAt != nil {
			t.Errorf("stored as %+v", first)
		}
		if at, err := event.ParseResultRef(first.Ref); err != nil || at.Execution != id || at.Name != "my step/1" || at.ID == 0 {
			t.Errorf("reference %s is read as %+v, %v", first.Ref, at, err)
		}
		second, err := p.PutResult(t.Context(), id, "my step/1", json.RawMessage(`null`))
		if err != nil || second.Ref == first.Ref {
			t.Errorf("put again: %+v, %v", second, err)
		}
		for ref, want := range map[string]string{first.Ref: string(data), second.Ref: `null`, strings.Replace(first.Ref, "%2F", "/", 1): string(data)} {
			if got, err := p.Result(t.Context(), ref); err != nil || string(got) != want {
				t.Errorf("%s is %s, %v", ref, got, err)
			}
		}
	})
}

func TestWhatCannotBePutAsideOrFound(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		huge := json.RawMessage(`"` + strings.Repeat("x", 64<<20) + `"`)
		for what, c := range map[string]struct {
			execution event.ID
			name      string
			data      json.RawMessage
			code      event.Code
		}{
			"no name":           {id, "", json.RawMessage(`1`), event.Invalid},
			"a long name":       {id, strings.Repeat("n", 513), json.RawMessage(`1`), event.Invalid},
			"no data":           {id, "n", nil, event.Invalid},
			"broken data":       {id, "n", json.RawMessage(`{"a":`), event.Invalid},
			"too much data":     {id, "n", huge, event.Invalid},
			"unknown execution": {id + 1, "n", json.RawMessage(`1`), event.NotFound},
		} {
			if _, err := p.PutResult(t.Context(), c.execution, c.name, c.data); event.CodeOf(err) != c.code {
				t.Errorf("%s: %v, want %s", what, err, c.code)
			}
		}
		put, err := p.PutResult(t.Context(), id, "n", json.RawMessage(`1`))
		if err != nil {
			t.Fatal(err)
		}
		for ref, code := range map[string]event.Code{
			put.Ref + "0": event.NotFound,
			strings.Replace(put.Ref, "/n/", "/m/", 1):                   event.NotFound,
			strings.Replace(put.Ref, id.String(), (id + 1).String(), 1): event.NotFound,
			"":                              event.Invalid,
			"noetl://execution/1/result/":   event.Invalid,
			"noetl://a/b/results/1/s/0/0/1": event.Invalid,
		} {
			if _, err := p.Result(t.Context(), ref); event.CodeOf(err) != code {
				t.Errorf("%s: %v, want %s", ref, err, code)
			}
		}
	})
}
