package container_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

// worker runs a command as another worker each time, the way it is handed out.
func (b *bench) worker(config string, resume *event.Resume) event.Incoming {
	b.t.Helper()
	cmd := &event.Command{
		EventID: 9, ExecutionID: 7, NodeID: "s", NodeName: "s", Action: "container", Context: event.CommandContext{ToolConfig: json.RawMessage(config)},
		Meta: event.CommandMeta{CommandID: "7:s:9", Step: "s", ToolKind: "container", Attempt: 1, ExecutionID: 7, CatalogID: 5, Resume: resume},
	}
	return pipeline.New(pipeline.Options{Tools: tool.NewSet(b.tool)}).Run(b.t.Context(), cmd, nil)
}

func (b *bench) parkOf(in event.Incoming) *event.Park {
	b.t.Helper()
	var p struct {
		Park *event.Park `json:"park"`
	}
	if err := json.Unmarshal(in.Payload, &p); err != nil || in.Type != event.CommandParked || p.Park == nil {
		b.t.Fatalf("this is no park: %s %s (%v)", in.Type, in.Payload, err)
	}
	return p.Park
}

const retried = `{"kind":"container","image":"busybox:1","spec":{"policy":{"rules":[{"when":"{{ output.status == 'error' }}","then":{"do":"retry","attempts":2}}]}}}`

// A command whose rules try again after a job failed starts another job,
// whether the end was seen or told.
func TestWorkersTakeTurnsWithAJob(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{false, true} {
		d, b := onDocker(t)
		p := b.parkOf(b.worker(retried, nil))
		first := d.only()
		p = b.parkOf(b.worker(retried, &event.Resume{State: p.Resume})) // it still runs
		if p.Delay != 10 || p.Callback != "container:"+first.id {
			t.Errorf("parked on %+v", p)
		}
		d.ends(3)
		wake := event.Wake{}
		if told {
			wake.Error = json.RawMessage(`{"kind":"logic","code":"failed","message":"job ended as failed","retryable":false}`)
		}
		p = b.parkOf(b.worker(retried, &event.Resume{State: p.Resume, Wake: wake}))
		if p.Callback == "container:"+first.id {
			t.Fatal("the retry waits for the job that failed")
		}
		d.mu.Lock()
		for _, c := range d.containers {
			c.status = "exited"
			if c != first {
				c.print(1, `{"second":true}`)
			}
		}
		d.mu.Unlock()
		in := b.worker(retried, &event.Resume{State: p.Resume})
		if in.Type != event.CommandCompleted || !strings.Contains(string(in.Payload), `"second":true`) {
			t.Errorf("ended as %s %s", in.Type, in.Payload)
		}
	}
}

func TestWhatIsToldIsTheDataOfTheStep(t *testing.T) {
	t.Parallel()
	_, b := onDocker(t)
	const config = `{"kind":"container","image":"busybox:1"}`
	p := b.parkOf(b.worker(config, nil))
	in := b.worker(config, &event.Resume{State: p.Resume, Wake: event.Wake{Data: json.RawMessage(`{"terminal_state":"succeeded","job_name":"j","via":"callback"}`)}})
	if in.Type != event.CommandCompleted || !strings.Contains(string(in.Payload), `"terminal_state":"succeeded"`) {
		t.Errorf("ended as %s %s", in.Type, in.Payload)
	}
}
