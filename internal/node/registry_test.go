package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

// TestWorkersAreInTheRegistryWhileTheyRun has one worker inside the server and
// one that talks to it over the network.
func TestWorkersAreInTheRegistryWhileTheyRun(t *testing.T) {
	t.Parallel()
	broker := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	n := start(t, node.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: broker, Version: "9.9", Slots: 3})
	c, err := client.New(n.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	names := func() string {
		rows, err := c.Workers(t.Context(), client.WorkerFilter{Kind: "worker_pool", Status: "ready"})
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, r := range rows {
			name, _, _ := strings.Cut(r.Name, "-")
			list = append(list, name)
		}
		return strings.Join(list, " ")
	}
	testkit.Eventually(t, func() bool { return names() == "embedded" }, 20*time.Second)

	w, err := node.StartWorker(t.Context(), node.WorkerOptions{
		ID: "remote-1", ServerURL: n.URL, NATSURL: "nats://" + broker, Slots: 2, Pools: []string{"gpu", "shared"}, Version: "9.9",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	testkit.Eventually(t, func() bool { return names() == "embedded remote" }, 20*time.Second)
	rows, err := c.Workers(t.Context(), client.WorkerFilter{Name: "remote-%"})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%+v: %v", rows, err)
	}
	var labels struct {
		Pool string `json:"pool_name"`
	}
	var kinds []string
	if err := json.Unmarshal(rows[0].Labels, &labels); err != nil || labels.Pool != "gpu" {
		t.Errorf("labels %s: %v", rows[0].Labels, err)
	}
	if err := json.Unmarshal(rows[0].Capabilities, &kinds); err != nil || len(kinds) < 4 {
		t.Errorf("capabilities %s: %v", rows[0].Capabilities, err)
	}
	if rows[0].Capacity == nil || *rows[0].Capacity != 2 || !strings.Contains(string(rows[0].Runtime), `"9.9"`) {
		t.Errorf("%+v %s", rows[0], rows[0].Runtime)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := names(); got != "embedded" {
		t.Errorf("after the remote worker ended: %s", got)
	}
}
