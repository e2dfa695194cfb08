package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api/apitest"
)

func TestResultRoundTrip(t *testing.T) {
	t.Parallel()
	p := running(7, 1)
	c := dial(t, handler(p))
	stored, err := c.PutResult(t.Context(), 7, "a b/c?", json.RawMessage(`{"n":9007199254740993}`))
	if err != nil {
		t.Fatal(err)
	}
	same(t, client.StoredResult{Ref: stored.Ref, Store: "db", Scope: "execution", Bytes: 22, SHA256: "sum"}, stored)
	data, err := c.Result(t.Context(), stored.Ref)
	if err != nil || string(data) != `{"n":9007199254740993}` {
		t.Errorf("%s: %v", data, err)
	}
	null, err := c.PutResult(t.Context(), 7, "n", json.RawMessage(`null`))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := c.Result(t.Context(), null.Ref); err != nil || string(data) != `null` {
		t.Errorf("%s: %v", data, err)
	}
}

func TestResultsKeepTheirErrorsAcrossTheWire(t *testing.T) {
	t.Parallel()
	c := dial(t, handler(&apitest.Plane{}))
	for name, call := range map[string]func() error{
		"not_found put": func() error {
			_, err := c.PutResult(t.Context(), 7, "n", json.RawMessage(`1`))
			return err
		},
		"invalid empty": func() error {
			_, err := c.PutResult(t.Context(), 7, "n", nil)
			return err
		},
		"invalid broken": func() error {
			_, err := c.PutResult(t.Context(), 7, "n", json.RawMessage(`{`))
			return err
		},
		"not_found get": func() error {
			_, err := c.Result(t.Context(), "noetl://execution/7/result/n/1")
			return err
		},
		"bad_request get": func() error {
			_, err := c.Result(t.Context(), "elsewhere")
			return err
		},
	} {
		code, _, _ := strings.Cut(name, " ")
		if err := call(); client.CodeOf(err) != client.Code(code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
