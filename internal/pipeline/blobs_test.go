package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

// streaming is a tool whose data goes aside while it comes.
type streaming struct{ media, text string }

func (streaming) Kind() string { return "streaming" }

func (s streaming) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	stored, err := call.Blobs.Put(ctx, tool.Blob{MediaType: s.media}, strings.NewReader(s.text))
	return &tool.Result{Stored: stored}, err
}

const streamed = `{"count":3,"rows":[{"id":1,"k":"` + canary + `"},{"id":2},{"id":3}]}`

func newShelf() *shelf { return &shelf{kept: map[string]json.RawMessage{}} }

func TestStreamedDataIsAReferenceWithASummary(t *testing.T) {
	t.Parallel()
	results := newShelf()
	b := newBench(pipeline.Options{Results: results, Secrets: newSafe()}, streaming{text: streamed})
	e := b.run(t, command("streaming", `{"kind":"streaming","x":"{{ keychain.api.token }}","set":{"ctx.n":"{{ output.count }}","ctx.last":"{{ output.rows[2].id }}"}}`))
	if e.Type != event.CommandCompleted || strings.Contains(string(e.Payload), canary) {
		t.Fatalf("%s %s", e.Type, e.Payload)
	}
	ref := e.Result.Context.Data.(map[string]any)["_ref"].(string)
	if kept := string(results.kept[ref]); kept != strings.Replace(streamed, canary, "[REDACTED]", 1) {
		t.Errorf("kept %s", kept)
	}
	same(t, e.Updates, `{"n":3,"last":3}`)
	if !strings.Contains(string(e.Payload), `"extracted":{"count":3,"rows":[{"id":1,`) {
		t.Errorf("no summary: %s", e.Payload)
	}
}

func TestStreamedDataOfSeveralTasksIsPutTogether(t *testing.T) {
	t.Parallel()
	results := newShelf()
	b := newBench(pipeline.Options{Results: results}, streaming{text: streamed})
	e := b.run(t, command("task_sequence", `[{"name":"a","kind":"noop"},{"name":"b","kind":"streaming"},{"name":"c","kind":"echo","x":"{{ b.count }}","y":"{{ b.rows[1].id }}"}]`))
	if e.Type != event.CommandCompleted {
		t.Fatalf("%s %s", e.Type, e.Payload)
	}
	ref := e.Result.Context.Data.(map[string]any)["_ref"].(string)
	want := `{"a":{"status":"ok"},"b":` + streamed + `,"c":{"args":{},"config":{"x":3,"y":2}}}`
	var got any
	if err := json.Unmarshal(results.kept[ref], &got); err != nil {
		t.Fatal(err)
	}
	same(t, got, want)
}

func TestWhatIsNoJSONIsShownByItsPlace(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{Results: newShelf()}, streaming{media: "image/png", text: "\x89PNG"})
	e := b.run(t, command("streaming", `{"kind":"streaming"}`))
	data, _ := e.Result.Context.Data.(map[string]any)
	if data["media_type"] != "image/png" || data["bytes"] != 4.0 || !strings.HasPrefix(fmt.Sprint(data["_ref"]), "noetl://") {
		t.Errorf("%v", data)
	}
	broken := newBench(pipeline.Options{Results: newShelf()}, streaming{text: `{"a":`})
	if e := broken.run(t, command("streaming", `{"kind":"streaming"}`)); e.Error.Kind != tool.KindParse {
		t.Errorf("broken JSON: %+v", e.Error)
	}
}

// chatty prints and returns little.
type chatty struct{ lines int }

func (chatty) Kind() string { return "chatty" }

func (c chatty) Run(_ context.Context, call *tool.Call) (*tool.Result, error) {
	var out strings.Builder
	w := io.MultiWriter(call.Log, &out)
	for i := range c.lines {
		fmt.Fprintf(w, "line %d\n", i)
	}
	return &tool.Result{Data: json.RawMessage(`1`), Stdout: out.String()}, nil
}

func TestOutputIsKeptOnce(t *testing.T) {
	t.Parallel()
	logs := func(e *ending) (l event.LogSummary) {
		var p struct {
			Result struct {
				Context struct{ Logs event.LogSummary }
			}
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			t.Fatal(err)
		}
		return p.Result.Context.Logs
	}
	results := newShelf()
	b := newBench(pipeline.Options{Results: results}, chatty{lines: 50000})
	e := b.run(t, command("chatty", `{"kind":"chatty"}`))
	l := logs(e)
	kept := string(results.kept[l.Ref])
	if l.Lines != 50000 || l.Bytes != int64(len(kept)) || !strings.HasPrefix(kept, "line 0\n") || !strings.HasSuffix(kept, "line 49999\n") {
		t.Errorf("%+v, kept %d bytes", l, len(kept))
	}
	if !strings.HasSuffix(l.Tail, "line 49999\n") || len(e.Payload) > 40<<10 {
		t.Errorf("tail %q, the event has %d bytes", l.Tail[max(0, len(l.Tail)-40):], len(e.Payload))
	}
	quiet := newBench(pipeline.Options{Results: results}, chatty{lines: 3})
	if e := quiet.run(t, command("chatty", `{"kind":"chatty"}`)); logs(e) != (event.LogSummary{}) || e.Result.Context.Stdout != "line 0\nline 1\nline 2\n" {
		t.Errorf("a few lines: %s", e.Payload)
	}
}
