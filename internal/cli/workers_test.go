package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

func TestWorkersListsWhoIsThere(t *testing.T) {
	t.Parallel()
	n, err := node.Start(t.Context(), node.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", InProcess: true, Version: "9.9", Slots: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop() })
	if _, err := n.Plane.Enlist(t.Context(), event.Registration{Name: "zebra", Status: "ready"}); err != nil {
		t.Fatal(err)
	}
	say := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Main(t.Context(), append(args, "--server-url", n.URL), &Env{Stdout: &out, Stderr: &errs}); code != ExitOK {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		return out.String()
	}
	testkit.Eventually(t, func() bool { return strings.Contains(say("workers"), "embedded-") }, 20*time.Second)
	lines := strings.Split(strings.TrimSpace(say("workers")), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "WORKER") {
		t.Fatalf("table:\n%s", strings.Join(lines, "\n"))
	}
	if f := strings.Fields(lines[1]); f[1] != "ready" || f[2] != "shared,system,subscription" || f[3] != "3" || f[4] != "go" || f[5] != "9.9" {
		t.Errorf("our worker: %s", lines[1])
	}
	if f := strings.Fields(lines[2]); f[0] != "zebra" || f[2] != "-" || f[3] != "-" || f[4] != "-" {
		t.Errorf("a worker that says nothing of itself: %s", lines[2])
	}
	pools := strings.Split(strings.TrimSpace(say("pools")), "\n")
	if len(pools) != 5 || strings.Join(strings.Fields(pools[0]), " ") != "POOL WORKERS SLOTS PENDING" {
		t.Fatalf("pools:\n%s", strings.Join(pools, "\n"))
	}
	if f := strings.Fields(pools[2]); f[0] != "shared" || f[1] != "1" || f[2] != "3" {
		t.Errorf("our pool: %s", pools[2])
	}
	if got := say("workers", "--status", "offline"); got != "no workers\n" {
		t.Errorf("offline workers: %s", got)
	}
	if got := say("workers", "--json", "--name", "zeb%"); !strings.Contains(got, `"zebra"`) || strings.Contains(got, "embedded") {
		t.Errorf("JSON: %s", got)
	}
}

func TestShardSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for _, f := range []observationFlags{{ShardIndex: -1}, {ShardIndex: 1}, {ShardCount: -1}, {ShardCount: 1025}, {ShardIndex: 4, ShardCount: 4}} {
		if _, err := f.options(); event.CodeOf(err) != event.Invalid {
			t.Errorf("%+v is accepted: %v", f, err)
		}
	}
	if o, err := (observationFlags{ShardIndex: 3, ShardCount: 4}).options(); err != nil || o.ShardIndex != 3 || o.ShardCount != 4 {
		t.Errorf("%+v: %v", o, err)
	}
}
