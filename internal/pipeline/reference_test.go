package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

// shelf is a store of results that can be out of order.
type shelf struct {
	mu      sync.Mutex
	kept    map[string]json.RawMessage
	broken  int // calls that fail before one works
	err     error
	fetched []string
}

func (s *shelf) fail() error {
	if s.broken == 0 {
		return nil
	}
	s.broken--
	return s.err
}

func (s *shelf) PutResult(_ context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail(); err != nil {
		return event.StoredResult{}, err
	}
	ref := fmt.Sprintf("noetl://execution/%d/result/%s/%d", execution, name, len(s.kept))
	s.kept[ref] = data
	return event.StoredResult{Ref: ref, Store: "db", Scope: "execution", Bytes: int64(len(data)), SHA256: "5ha"}, nil
}

func (s *shelf) Result(_ context.Context, ref string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = append(s.fetched, ref)
	if err := s.fail(); err != nil {
		return nil, err
	}
	if data, ok := s.kept[ref]; ok {
		return data, nil
	}
	return nil, event.Errorf(event.NotFound, "no result %s", ref)
}

func (s *shelf) PutBlob(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return event.StoredResult{}, err
	}
	at, err := s.PutResult(ctx, execution, o.Name, data)
	at.MediaType = o.MediaType
	return at, err
}

func (s *shelf) OpenBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, event.StoredResult, error) {
	data, err := s.Result(ctx, ref)
	if err != nil {
		return nil, event.StoredResult{}, err
	}
	data = data[offset:]
	if length > 0 {
		data = data[:min(int(length), len(data))]
	}
	return io.NopCloser(bytes.NewReader(data)), event.StoredResult{Ref: ref, Bytes: int64(len(data))}, nil
}

// large is data of more than the limit below.
var large = fmt.Sprintf(`{"count":3,"text":%q,"rows":[{"id":1},{"id":2},{"id":3}]}`, strings.Repeat("x", 600))

const limit = 200

// reference is how a result says where its data is.
type reference struct {
	Kind, Ref, Store, Scope string
	Meta                    struct {
		Bytes     int
		SHA256    string
		MediaType string `json:"media_type"`
	}
	Extracted json.RawMessage
}

func referenceOf(t *testing.T, e *ending) *reference {
	t.Helper()
	var p struct {
		Result struct{ Reference *reference }
	}
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		t.Fatal(err)
	}
	return p.Result.Reference
}

func TestLargeDataIsKeptElsewhere(t *testing.T) {
	t.Parallel()
	summary := `{"count":3,"text":{"_len":600},"rows":[{"id":1}]}`
	for _, tc := range []struct {
		name, kind, config string
		change             func(*event.Command)
		whole, extracted   string
	}{
		{"a single tool", "big", `{"kind":"big"}`, nil, large, summary},
		{"a list", "task_sequence", `[{"a":{"kind":"noop"}},{"b":{"kind":"big"}}]`, nil, `{"a":{"status":"ok"},"b":` + large + `}`, `{"a":{"status":"ok"},"b":` + summary + `}`},
		{
			"with selected parts", "task_sequence", `[{"b":{"kind":"big"}}]`,
			func(c *event.Command) {
				c.Meta.Output = &event.Output{Select: []event.Selection{{Path: []string{"rows"}, As: "rows"}, {Path: []string{"b", "count"}, As: "n"}, {Path: []string{"no"}, As: "no"}}}
			},
			`{"b":` + large + `}`, `{"b":` + summary + `,"_selected":{"rows":[{"id":1},{"id":2},{"id":3}],"n":3}}`,
		},
		{
			"as the step says", "noop", `{"kind":"noop"}`, func(c *event.Command) { c.Meta.Output = &event.Output{InlineMax: 3} },
			`{"status":"ok"}`, `{"status":"ok"}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			store := &shelf{kept: map[string]json.RawMessage{}}
			b := newBench(pipeline.Options{Results: store, InlineLimit: limit}, &fake{kind: "big", answers: []answer{{data: large}}})
			cmd := command(tc.kind, tc.config)
			if tc.change != nil {
				tc.change(cmd)
			}
			e := b.run(t, cmd)
			ref := "noetl://execution/7/result/s/0"
			e.wantData(t, fmt.Sprintf(`{"_ref":%q}`, ref))
			same(t, store.kept[ref], tc.whole)
			got := referenceOf(t, e)
			if got.Kind != "result_ref" || got.Ref != ref || got.Store != "db" || got.Scope != "execution" ||
				got.Meta.Bytes != len(tc.whole) || got.Meta.SHA256 != "5ha" || got.Meta.MediaType != "application/json" {
				t.Errorf("the reference is %+v", got)
			}
			same(t, got.Extracted, tc.extracted)
		})
	}
}

func TestSmallDataTravelsInTheEvent(t *testing.T) {
	t.Parallel()
	store := &shelf{kept: map[string]json.RawMessage{}}
	b := newBench(pipeline.Options{Results: store, InlineLimit: limit}, &fake{kind: "big", answers: []answer{{data: large}}})
	e := b.run(t, command("noop", `{"kind":"noop"}`))
	e.wantData(t, `{"status":"ok"}`)
	b.run(t, command("big", `{"kind":"big"}`, func(c *event.Command) { c.Meta.Output = &event.Output{InlineMax: 5000} })).wantData(t, large)
	if len(store.kept) > 0 || referenceOf(t, e) != nil {
		t.Errorf("kept elsewhere: %v", store.kept)
	}
}

func TestDataThatCannotBeStoredIsNeverDroppedInSilence(t *testing.T) {
	t.Parallel()
	offline := errors.New("connection refused")
	for _, tc := range []struct {
		name      string
		broken    int
		err       error
		config    string
		failure   string
		retryable bool
	}{
		{"it works in the end", 3, offline, `{"kind":"big"}`, "", false},
		{"it never works", 99, offline, `{"kind":"big"}`, "step s: the result is too large for an event and could not be stored: connection refused", true},
		{"it is refused", 99, event.Errorf(event.Limit, "too large"), `{"kind":"big"}`, "step s: the result is too large for an event and could not be stored: too large", false},
		{
			"a failure with data", 99, offline, rules("big", `{"then":{"do":"fail"}}`),
			"step s: a policy rule said fail (and the data there is cannot be kept: the result is too large for an event and could not be stored: connection refused)", false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			store := &shelf{kept: map[string]json.RawMessage{}, broken: tc.broken, err: tc.err}
			b := newBench(pipeline.Options{Results: store, InlineLimit: limit}, &fake{kind: "big", answers: []answer{{data: large}}})
			e := b.run(t, command("big", tc.config))
			if tc.failure == "" {
				e.wantData(t, `{"_ref":"noetl://execution/7/result/s/0"}`)
				return
			}
			if e.Type != event.CommandFailed || e.Error.Message != tc.failure || e.Error.Retryable != tc.retryable {
				t.Errorf("the command ended with %s: %s", e.Type, e.Payload)
			}
		})
	}
}

func TestTheDataOfAFailureIsKeptToo(t *testing.T) {
	t.Parallel()
	store := &shelf{kept: map[string]json.RawMessage{}}
	b := newBench(pipeline.Options{Results: store, InlineLimit: limit}, &fake{kind: "big", answers: []answer{{data: large, err: failing("logic", false)}}})
	e := b.run(t, command("big", `{"kind":"big"}`))
	e.wantFailure(t, "logic", "step s: boom")
	same(t, e.Result.Context.Data, `{"_ref":"noetl://execution/7/result/s/0"}`)
	if referenceOf(t, e) == nil {
		t.Errorf("payload is %s", e.Payload)
	}
}

// summarised is a render context in which the step big is only a summary.
const summarised = `{"big":{"count":3,"text":{"_len":600},"rows":[{"id":1}]},"plain":1,"__steps":{"big":{"ref":{"ref":"noetl://big","store":"db"}}}}`

func TestWhatASummaryCannotAnswerIsFetched(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		template, want string
		fetches        int
	}{
		{"{{ big.count }}", `3`, 0},
		{"{{ big.data.count }} {{ plain }}", `"3 1"`, 0},
		{"{{ big._ref }} {{ big._store }}", `"noetl://big db"`, 0},
		{"{{ big.missing is defined }}", `false`, 1}, // it could be a method of the data
		{"{{ big.rows[2].id }}", `3`, 1},
		{"{{ big.rows | length }} {{ big.text | length }}", `"3 600"`, 1},
		{"{{ big.data.rows[1] }}", `{"id":2}`, 1},
	} {
		t.Run(tc.template, func(t *testing.T) {
			t.Parallel()
			store := &shelf{kept: map[string]json.RawMessage{"noetl://big": json.RawMessage(large)}}
			b := newBench(pipeline.Options{Results: store})
			for range 2 { // the second command finds it at hand
				b.run(t, command("echo", fmt.Sprintf(`{"kind":"echo","v":%q}`, tc.template), with(summarised))).
					wantData(t, `{"config":{"v":`+tc.want+`},"args":{}}`)
			}
			if len(store.fetched) != tc.fetches {
				t.Errorf("fetched %q, want %d fetches", store.fetched, tc.fetches)
			}
		})
	}
}

func TestTheLabelsOfASummarisedListStayVisible(t *testing.T) {
	t.Parallel()
	store := &shelf{kept: map[string]json.RawMessage{"noetl://p": json.RawMessage(`{"make":{"n":1,"rows":[1,2]}}`)}}
	b := newBench(pipeline.Options{Results: store})
	b.run(t, command("echo", `{"kind":"echo","v":"{{ [p.n, p.rows[1], p.make.rows[0]] }}"}`,
		with(`{"p":{"make":{"n":1,"rows":[1]},"n":1,"rows":[1]},"__steps":{"p":{"ref":{"ref":"noetl://p","sequence":true}}}}`))).
		wantData(t, `{"config":{"v":[1,2,1]},"args":{}}`)
}

func TestProgramsGetWholeValues(t *testing.T) {
	t.Parallel()
	store := &shelf{kept: map[string]json.RawMessage{"noetl://big": json.RawMessage(large)}}
	python := &fake{kind: "python"}
	b := newBench(pipeline.Options{Results: store}, python)
	b.run(t, command("python", `{"kind":"python","code":"result = variables['big']"}`, with(summarised)))
	b.run(t, command("python", `{"kind":"python","code":"result = big","input":{"big":"{{ big }}"}}`, with(summarised)))
	same(t, json.RawMessage(python.calls[0].Variables), `{"big":`+large+`,"plain":1}`)
	same(t, python.calls[1].Args["big"], large)
}

func TestAValueThatCannotBeFetchedFailsTheTask(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"config":    `{"kind":"echo","v":"{{ big.rows[1].id + 1 }}"}`,
		"input":     `{"kind":"echo","input":{"v":"{{ big }}"}}`,
		"set":       `{"kind":"noop","set":{"ctx.v":"{{ big.rows }}"}}`,
		"a rule":    rules("noop", `{"when":"{{ big.rows[1].id == 2 }}","then":{"do":"continue"}}`),
		"a program": `{"kind":"python","code":"result = context"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(pipeline.Options{Results: &shelf{}}, &fake{kind: "python"})
			var kind struct{ Kind string }
			if err := json.Unmarshal([]byte(config), &kind); err != nil {
				t.Fatal(err)
			}
			e := b.run(t, command(kind.Kind, config, with(summarised)))
			if e.Type != event.CommandFailed || e.Error.Code != "REFERENCE_NOT_AVAILABLE" || !e.Error.Retryable ||
				!strings.Contains(e.Error.Message, "noetl://big is not available") {
				t.Errorf("the command ended with %s: %s", e.Type, e.Payload)
			}
			if b.echo.count() > 0 {
				t.Error("the tool ran without its value")
			}
		})
	}
}

func TestARuleCanTryAgainToFetch(t *testing.T) {
	t.Parallel()
	store := &shelf{kept: map[string]json.RawMessage{"noetl://big": json.RawMessage(large)}, broken: 7, err: errors.New("offline")}
	b := newBench(pipeline.Options{Results: store})
	b.run(t, command("echo", `{"kind":"echo","v":"{{ big.rows[1].id }}","spec":{"policy":{"rules":[
		{"when":"{{ output.error.code == 'REFERENCE_NOT_AVAILABLE' }}","then":{"do":"retry","attempts":3}}]}}}`, with(summarised))).
		wantData(t, `{"config":{"v":2},"args":{}}`)
}

func TestAContextKeptElsewhereIsFetchedFirst(t *testing.T) {
	t.Parallel()
	store := &shelf{kept: map[string]json.RawMessage{
		"noetl://ctx": json.RawMessage(summarised), "noetl://big": json.RawMessage(large),
	}}
	b := newBench(pipeline.Options{Results: store})
	away := with(`{"__context_ref__":"noetl://ctx","__context_bytes__":600000}`)
	b.run(t, command("echo", `{"kind":"echo","v":"{{ plain }} {{ big.count }} {{ big.rows[1].id }}"}`, away)).
		wantData(t, `{"config":{"v":"1 3 2"},"args":{}}`)
	e := newBench(pipeline.Options{}).run(t, command("echo", `{"kind":"echo"}`, away))
	if e.Error.Code != "REFERENCE_NOT_AVAILABLE" || e.Error.Kind != tool.KindNotFound {
		t.Errorf("without a store: %s", e.Payload)
	}
}
