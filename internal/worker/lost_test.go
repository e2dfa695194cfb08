package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsbus "github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/worker"
)

const patience = 30 * time.Second

// TestALostCommandQueueIsJoinedAgain takes away from a running worker its
// consumer, its stream and at last the broker with all it stored.
func TestALostCommandQueueIsJoinedAgain(t *testing.T) {
	t.Parallel()
	port := testkit.FreePort(t)
	broker := testkit.StartNATS(t, port, t.TempDir())
	b, err := natsbus.Connect(t.Context(), natsbus.Options{URL: broker.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	p, registry := &plane{}, &obs.Registry{}
	ran := make(chan event.ID, 16)
	f := start(t, p, func(ctx context.Context, cmd *event.Command) event.Incoming {
		ran <- cmd.EventID
		return succeed(ctx, cmd)
	}, func(o *worker.Options) {
		o.Bus, o.Metrics = b, obs.NewWorker(registry, obs.WorkerVocabulary{})
	})
	ready := func() bool { return f.Unready() == "" }
	flows := func(id event.ID) {
		t.Helper()
		testkit.Eventually(t, ready, patience)
		n := event.Notification{ExecutionID: id / 10, EventID: id, CommandID: commandID(id), Pool: "shared"}
		testkit.Eventually(t, func() error { return b.Publish(t.Context(), n) }, patience)
		select {
		case got := <-ran:
			if got != id {
				t.Fatalf("command %d ran, want %d", got, id)
			}
		case <-time.After(patience):
			t.Fatalf("command %d does not run", id)
		}
	}
	flows(11)

	conn, err := natsgo.Connect(broker.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), natsbus.DefaultStream, natsbus.DefaultConsumer+"_shared"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() bool { return rejoined(t, registry, obs.ReasonConsumer) }, patience)
	flows(21)
	if err := js.DeleteStream(t.Context(), natsbus.DefaultStream); err != nil {
		t.Fatal(err)
	}
	flows(31)

	broker.Kill()
	testkit.Eventually(t, func() bool { return !ready() }, patience)
	testkit.StartNATS(t, port, t.TempDir())
	flows(41)
	testkit.Eventually(t, func() bool { return rejoined(t, registry, obs.ReasonConnection) }, patience)
	if trouble := f.Dead(); trouble != "" {
		t.Errorf("the worker counts as dead: %s", trouble)
	}
}

// rejoined tells whether the worker has counted such a return.
func rejoined(t *testing.T, r *obs.Registry, reason string) bool {
	t.Helper()
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	line := `noetl_worker_command_loop_reconnect_total{reason="` + reason + `"} `
	return strings.Contains(out.String(), line) && !strings.Contains(out.String(), line+"0\n")
}
