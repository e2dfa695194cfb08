package form_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/form"
)

func fields(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAFormBecomesAJSONSchema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"types alone":       {`{"a":"text","b":"int"}`, `{"additionalProperties":false,"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"type":"object"}`},
		"more than a type":  {`{"a":{"type":"bool","title":"Sure?","required":true}}`, `{"additionalProperties":false,"properties":{"a":{"title":"Sure?","type":"boolean"}},"required":["a"],"type":"object"}`},
		"a choice":          {`{"a":{"enum":["x","y"],"default":"x"}}`, `{"additionalProperties":false,"properties":{"a":{"default":"x","enum":["x","y"]}},"type":"object"}`},
		"a schema":          {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"a field type":      {`{"type":"string"}`, `{"additionalProperties":false,"properties":{"type":{"type":"string"}},"type":"object"}`},
		"anything at all":   {`{"a":null}`, `{"additionalProperties":false,"properties":{"a":{}},"type":"object"}`},
		"an object of any":  {`{"type":"object"}`, `{"type":"object"}`},
		"no fields, so far": {`{}`, `{"additionalProperties":false,"properties":{},"type":"object"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := form.Schema(fields(t, c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestAFormThatCannotBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"txt"}`:                                           `field a: there is no type "txt"`,
		`{"a":7}`:                                               `field a: want a type`,
		`{"a":{"type":"int","required":"x"}}`:                   `field a: required must be true or false`,
		`{"properties":{"a":{"type":7}}}`:                       `not a JSON Schema`,
		`{"$ref":"file:///etc/passwd"}`:                         `cannot refer to file:///etc/passwd`,
		`{"$ref":"http://127.0.0.1/x"}`:                         `cannot refer to http://127.0.0.1/x`,
		`{"a":{"title":"` + strings.Repeat("x", 70<<10) + `"}}`: `at most`,
	} {
		if _, err := form.Schema(fields(t, in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", in, err, want)
		}
	}
}

func TestAnAnswerFitsOrSaysWhereItDoesNot(t *testing.T) {
	t.Parallel()
	schema, err := form.Schema(fields(t, `{"approved":{"type":"boolean","required":true},"comment":"string","list":{"type":"array","items":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		`{"approved":true}`:                "",
		`{"approved":false,"comment":"x"}`: "",
		`{}`:                               "approved",
		``:                                 "object",
		`{"approved":"yes"}`:               "/approved: got string, want boolean",
		`{"approved":true,"list":[1,"x"]}`: "/list/1: got string, want integer",
		`{"approved":true,"comments":"x"}`: "comments",
		`{"approved":true,"list":[1,99999999999999999999]}`: "",
	} {
		err := form.Fit(schema, json.RawMessage(answer))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", answer, err, want)
		}
		if _, ok := errors.AsType[form.Misfits](err); want != "" && !ok {
			t.Errorf("%s: %T is no list of misfits", answer, err)
		}
	}
	if err := form.Fit(schema, json.RawMessage(`{`)); err == nil {
		t.Error("what is not JSON fits")
	}
}
