package node_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/node"
)

const askAndPrint = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: ask, path: test/ask}
workflow:
  - step: speak
    tool: {kind: shell, command: "for i in 1 2 3; do echo line $i; done"}
    next: {arcs: [{step: pause}]}
  - step: pause
    tool: {kind: wait, duration: 10ms}
    next: {arcs: [{step: ask}]}
  - step: ask
    tool: {kind: wait, approval: true, message: "Go on?", timeout: 1h}
    next: {arcs: [{step: act}]}
  - step: act
    tool: {kind: shell, command: "echo done by {{ ask.by }}"}
`

// TestAPersonFollowsAndAnswersAnExecution is the way of live output and of an
// approval through a whole server.
func TestAPersonFollowsAndAnswersAnExecution(t *testing.T) {
	t.Parallel()
	n := start(t, node.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0"})
	cl, err := client.New(n.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := cl.Register(ctx, askAndPrint); err != nil {
		t.Fatal(err)
	}
	x, err := cl.Execute(ctx, client.ExecuteRequest{Path: "test/ask"})
	if err != nil {
		t.Fatal(err)
	}
	parked := func(e client.Event) error { // the second wait is the one for a person
		if e.NodeName == "ask" && e.Type == "command.parked" {
			return context.Canceled
		}
		return nil
	}
	if err := cl.Stream(ctx, x.ExecutionID, 0, parked); err == nil {
		t.Fatal("the execution did not ask")
	}
	waits, err := cl.Waits(ctx, x.ExecutionID)
	if err != nil || len(waits) != 1 || waits[0].Signal != "approval" || waits[0].Message != "Go on?" || !waits[0].Approval || waits[0].Until.IsZero() {
		t.Fatalf("waits %+v, %v", waits, err)
	}
	var text strings.Builder
	followed := make(chan error, 1)
	go func() {
		followed <- cl.FollowLogs(ctx, x.ExecutionID, "", func(c client.LogChunk) error { text.WriteString(c.Text); return nil })
	}()
	if _, err := cl.Signal(ctx, x.ExecutionID, "approval", client.SignalRequest{Data: json.RawMessage(`{"approved":"maybe"}`)}); err == nil {
		t.Error("an answer that does not fit is taken")
	}
	a, err := cl.Signal(ctx, x.ExecutionID, "approval", client.SignalRequest{Data: json.RawMessage(`{"approved":true}`), Sender: "ann"})
	if err != nil || a.Status != "delivered" {
		t.Fatalf("answer %+v, %v", a, err)
	}
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	if got := text.String(); got != "line 1\nline 2\nline 3\ndone by ann\n" {
		t.Errorf("followed %q", got)
	}
	if st, err := cl.Wait(ctx, x.ExecutionID); err != nil || st.Status != "COMPLETED" {
		t.Errorf("%+v, %v", st, err)
	}
}
