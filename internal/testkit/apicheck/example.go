package apicheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// keep remembers the first good exchange of an operation that says something.
func (c *Checker) keep(e *exchange) {
	o := c.find(e.method, e.url)
	if o == nil || e.status >= 300 || e.method == "HEAD" || e.bodyCut || e.answerCut || len(e.answer) == 0 {
		return
	}
	x := Example{Path: e.url.RequestURI(), Status: e.status, Content: e.header.Get("Content-Type")}
	if json.Valid(e.body) {
		x.Body = bytes.Clone(e.body)
	}
	if x.Content == "application/json" && o.id != "openapi" && json.Valid(e.answer) {
		x.Answer = bytes.Clone(e.answer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.examples[o.id]
	if !known || len(before.Body) == 0 && len(x.Body) > 0 && o.body != nil || hollow(before.Answer) && !hollow(x.Answer) {
		c.examples[o.id] = x
	}
}

// hollow tells whether an answer is an empty list, or an object around one.
func hollow(answer json.RawMessage) bool {
	return len(answer) > 0 && len(answer) < 40 && bytes.Contains(answer, []byte("[]"))
}

var (
	idDigits = regexp.MustCompile(`\b[0-9]{15,19}\b`)
	secrets  = regexp.MustCompile(`(noetl_pat_|"session_token": ?")[0-9a-f_]{64,}`)
	request  = regexp.MustCompile(`("request_id": ?")[A-Z2-7]{16}"`)
	address  = regexp.MustCompile(`http://127\.0\.0\.1:\d+`) // of an issuer
	moment   = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
)

// Steady gives examples ids and times that are the same in every run, and cuts
// what is long, so that a page can show them and a change is a change.
func Steady(examples map[string]Example) map[string]Example {
	out := map[string]Example{}
	for id, e := range examples {
		s := &steadier{ids: map[string]string{}}
		e.Path = s.text(e.Path)
		e.Body, e.Answer = s.json(e.Body), s.json(e.Answer)
		out[id] = e
	}
	return out
}

// Renewed are fresh examples, but for those that only differ from written ones
// in what differs in every run: these stay as they are.
func Renewed(written, fresh map[string]Example) map[string]Example {
	out := maps.Clone(fresh)
	for id, w := range written {
		f, ok := fresh[id]
		if ok && w.Path == f.Path && w.Status == f.Status && w.Content == f.Content && form(w.Body) == form(f.Body) && form(w.Answer) == form(f.Answer) {
			out[id] = w
		}
	}
	return out
}

// form is what a text of JSON consists of, without its values.
func form(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	var b strings.Builder
	writeForm(&b, v)
	return b.String()
}

func writeForm(b *strings.Builder, v any) {
	switch v := v.(type) {
	case []any:
		b.WriteByte('[')
		for _, item := range v {
			writeForm(b, item)
		}
		b.WriteByte(']')
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(b, "{%q:", name)
			writeForm(b, v[name])
			b.WriteByte('}')
		}
	default:
		fmt.Fprintf(b, "%T ", v)
	}
}

type steadier struct{ ids map[string]string }

func (s *steadier) text(text string) string {
	text = idDigits.ReplaceAllStringFunc(text, func(id string) string {
		if s.ids[id] == "" {
			s.ids[id] = fmt.Sprintf("6124895533702512%02d", len(s.ids)+1)
		}
		return s.ids[id]
	})
	text = secrets.ReplaceAllString(text, "${1}…")
	text = request.ReplaceAllString(text, `${1}QD3YOWKSM7KRN76C"`)
	text = address.ReplaceAllString(text, "https://login.example.com")
	return moment.ReplaceAllString(text, "2026-01-02T15:04:05.123Z")
}

func (s *steadier) json(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(s.text(string(raw))))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(shortened(v)); err != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// shortened leaves two items of a list and the beginning of a text.
func shortened(v any) any {
	const items, letters = 2, 400
	switch v := v.(type) {
	case []any:
		v = v[:min(len(v), items)]
		for i := range v {
			v[i] = shortened(v[i])
		}
		return v
	case map[string]any:
		for name := range v {
			v[name] = shortened(v[name])
		}
	case string:
		if r := []rune(v); len(r) > letters {
			return string(r[:letters]) + "…"
		}
	}
	return v
}
