package node_test

import (
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

func TestAnUnusableStreamOfEventsStopsTheStart(t *testing.T) {
	t.Parallel()
	url := testkit.NATSProcess(t)
	conn, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "noetl_events", Subjects: []string{"noetl.events.>"}, Retention: jetstream.WorkQueuePolicy,
	}); err != nil {
		t.Fatal(err)
	}
	o := node.Options{DataDir: t.TempDir(), NATSURL: url, NoWorker: true, Publication: node.Publication{Publisher: node.PublishInternal}}
	if n, err := node.Start(t.Context(), o); err == nil {
		_ = n.Stop()
		t.Fatal("the node started")
	} else if event.CodeOf(err) != event.Conflict || !strings.Contains(err.Error(), "retention is WorkQueue, must be Limits") {
		t.Errorf("error %v", err)
	}
	o.Publication.Publisher = node.PublishExternal // it does not touch the stream
	start(t, o)
}

func TestAPublisherNobodyKnowsStopsTheStart(t *testing.T) {
	t.Parallel()
	n, err := node.Start(t.Context(), node.Options{DataDir: t.TempDir(), NoWorker: true, Publication: node.Publication{Publisher: "relay"}})
	if err == nil {
		_ = n.Stop()
		t.Fatal("the node started")
	}
	if !strings.Contains(err.Error(), "want off, internal or external") {
		t.Errorf("error %v", err)
	}
}
