package pipeline_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/noop"
)

func TestManyCommandsShareOneRunner(t *testing.T) {
	t.Parallel()
	// A small cache makes commands push each other out all the time.
	r := pipeline.New(pipeline.Options{Tools: tool.NewSet(noop.New()), CacheSize: 3})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				n := (i + j) % 7
				in := r.Run(t.Context(), command("noop", fmt.Sprintf(`{"kind":"noop","result":"{{ a + %d }}"}`, n), with(`{"a":1}`)), nil)
				if in.Type != event.CommandCompleted {
					t.Errorf("the command ended with %s", in.Payload)
				}
				var want any = float64(1 + n)
				if got := decode(t, in).Result.Context.Data; got != want {
					t.Errorf("data is %v, want %v", got, want)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkNoop(b *testing.B) {
	r := pipeline.New(pipeline.Options{Tools: tool.NewSet(noop.New())})
	cmd := command("noop", `{"kind":"noop"}`, with(`{}`), stepInput(`{}`))
	b.ReportAllocs()
	for b.Loop() {
		if in := r.Run(context.Background(), cmd, io.Discard); in.Type != event.CommandCompleted {
			b.Fatalf("%s", in.Payload)
		}
	}
}

func BenchmarkPipelineOfThree(b *testing.B) {
	r := pipeline.New(pipeline.Options{Tools: tool.NewSet(noop.New())})
	cmd := command("task_sequence", `[{"a":{"kind":"noop","result":{"n":"{{ x }}"}}},{"b":{"kind":"noop","result":{"n":"{{ a.n + 1 }}"}}},
		{"c":{"kind":"noop","result":"{{ b.n }}","spec":{"policy":{"rules":[{"when":"{{ output.status == 'error' }}","then":{"do":"retry"}}]}}}}]`, with(`{"x":1}`))
	b.ReportAllocs()
	for b.Loop() {
		if in := r.Run(context.Background(), cmd, io.Discard); in.Type != event.CommandCompleted {
			b.Fatalf("%s", in.Payload)
		}
	}
}
