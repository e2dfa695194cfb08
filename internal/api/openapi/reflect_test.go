package openapi_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api/openapi"
)

type (
	inner struct {
		Kept bool `json:"kept"`
	}
	own   struct{}
	outer struct {
		inner
		Name   string          `json:"name"`
		Count  int64           `json:"count,omitempty"`
		At     *time.Time      `json:"at"`
		Raw    json.RawMessage `json:"raw"`
		Key    []byte          `json:"key"`
		Self   *outer          `json:"self,omitempty"`
		List   []inner         `json:"list"`
		ByName map[string]int  `json:"by_name"`
		Hidden string          `json:"-"`
		secret string
	}
)

func (own) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

func TestSchemasSayWhatJSONHolds(t *testing.T) {
	t.Parallel()
	_ = outer{}.secret
	for _, c := range []struct {
		to   openapi.Direction
		want string
	}{
		{openapi.Sent, `{"type":"object","properties":{"kept":{"type":"boolean"},"name":{"description":"Its name.","type":"string","enum":["a","b"]},"count":{"type":"integer","format":"int64"},"at":{"type":["string","null"],"format":"date-time"},"raw":{},"key":{"type":"string","contentEncoding":"base64"},"self":{"$ref":"#/components/schemas/Outer"},"list":{"type":"array","items":{"$ref":"#/components/schemas/Inner"}},"by_name":{"type":"object","additionalProperties":{"type":"integer"}}},"required":["kept","name","at","raw","key","list","by_name"]}`},
		{openapi.Received, `{"type":"object","properties":{"kept":{"type":["boolean","null"]},"name":{"description":"Its name.","type":"string","enum":["a","b"]},"count":{"type":["integer","null"],"format":"int64"},"at":{"type":["string","null"],"format":"date-time"},"raw":{},"key":{"type":["string","null"],"contentEncoding":"base64"},"self":{"anyOf":[{"$ref":"#/components/schemas/Outer"},{"type":"null"}]},"list":{"type":["array","null"],"items":{"$ref":"#/components/schemas/Inner"}},"by_name":{"type":["object","null"],"additionalProperties":{"type":"integer"}}},"required":["name"]}`},
	} {
		of := &openapi.Components{Words: openapi.Words{Meanings: map[string]string{"name": "Its name."}, Values: map[string][]string{"Outer.name": {"a", "b"}}}}
		of.Require(reflect.TypeFor[outer](), []string{"name"})
		if s := of.Schema(reflect.TypeFor[outer](), c.to); s.Ref != "#/components/schemas/Outer" {
			t.Fatalf("%+v", s)
		}
		all, errs := of.All()
		raw, err := json.Marshal(all["Outer"])
		if err != nil || len(errs) > 0 || len(of.Unspoken()) > 0 {
			t.Fatal(err, errs, of.Unspoken())
		}
		if string(raw) != c.want {
			t.Errorf("got  %s\nwant %s", raw, c.want)
		}
	}
}

func TestWhatCannotBeDerivedIsNamed(t *testing.T) {
	t.Parallel()
	c := &openapi.Components{Words: openapi.Words{Meanings: map[string]string{"Outer.gone": "It was here."}}}
	c.Require(reflect.TypeFor[inner](), []string{"nothing"})
	for _, typ := range []reflect.Type{reflect.TypeFor[own](), reflect.TypeFor[outer](), reflect.TypeFor[chan int]()} {
		c.Schema(typ, openapi.Sent)
	}
	_, errs := c.All()
	var text strings.Builder
	for _, err := range errs {
		text.WriteString(err.Error() + "\n")
	}
	for _, want := range []string{"own writes or reads itself", "inner has no member nothing", "chan int has no form"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("nobody says %q:\n%s", want, text.String())
		}
	}
	if idle := c.Unspoken(); len(idle) != 1 || idle[0] != "Outer.gone" {
		t.Errorf("words without a member: %v", idle)
	}
}

func TestThePageEscapesWhatItShows(t *testing.T) {
	t.Parallel()
	d := &openapi.Document{Tags: []openapi.Tag{{Name: "T"}}}
	d.Paths.Add(&openapi.Operation{
		Method: "POST", Path: "/a/<b>", ID: "x", Tags: []string{"T"}, Summary: "<script>alert(1)</script>", Role: "viewer",
		Example: &openapi.Example{Path: "/a/$(id)\"`", Body: json.RawMessage(`{"a":"it's"}`), Answer: json.RawMessage(`{"a":"</pre><img>"}`)},
		Answers: openapi.Answers{{Status: "200", Answer: &openapi.Answer{Description: "<i>"}}},
	})
	page, err := d.Page()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>alert", "/a/<b>", "<img>", "<i>", "onclick", "style="} {
		if strings.Contains(string(page), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{`/a/\$(id)\&#34;\` + "`", `it&#39;\&#39;&#39;s`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the request to copy is not escaped as %s", want)
		}
	}
}
