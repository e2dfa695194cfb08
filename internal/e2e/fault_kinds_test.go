package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/testkit"
)

// rest lets the system work between two blows.
func rest() { pause(context.Background(), 500*time.Millisecond) }

// killServerAtFailpoints lets the first server die at one place after the
// other, early and later in its life, and starts it again each time.
func killServerAtFailpoints(c *campaign, until time.Time) {
	var points []failpoint.Point
	for _, p := range failpoint.Points() {
		if !strings.HasPrefix(string(p), "worker.") {
			points = append(points, p)
		}
	}
	for round := 1; ; round++ {
		for _, p := range points {
			c.servers[0].Kill()
			c.dies(c.launchServer(0, fmt.Sprintf("%s=kill@%d", p, round*2)), string(p))
			c.startServer(0)
		}
		if time.Now().After(until) {
			return
		}
	}
}

// killWorkerAtFailpoints does the same to a worker.
func killWorkerAtFailpoints(c *campaign, until time.Time) {
	for round := 1; ; round++ {
		for _, p := range []failpoint.Point{failpoint.WorkerClaimed, failpoint.WorkerRan, failpoint.WorkerReported} {
			c.workers[0].Kill()
			c.dies(c.launchWorker(0, fmt.Sprintf("%s=kill@%d", p, round*2)), string(p))
		}
		c.startWorker(0)
		if time.Now().After(until) {
			return
		}
	}
}

// dies waits until a process has reached the place where it dies.
func (c *campaign) dies(p *testkit.Process, where string) {
	c.t.Helper()
	select {
	case <-p.Done():
		c.injected++
	case <-time.After(patience):
		c.t.Errorf("nothing came past %s", where)
		p.Kill()
	}
}

// commitsWithoutAnswer lets stores commit and then report that they do not
// know, and the control plane lose answers of its own.
func commitsWithoutAnswer(c *campaign, until time.Time) {
	for i := range c.servers {
		c.servers[i].Kill()
		c.startServer(i, "commit.after=error@*5", "append.after=error@*7", "commit.before=error@*11")
		c.injected++
	}
	pause(context.Background(), time.Until(until))
	for i := range c.servers {
		c.servers[i].Kill()
		c.startServer(i)
	}
}

func ownPostgres(c *campaign) {
	c.postgres = testkit.NewCrashablePostgres(c.t)
	c.s.dsn = c.postgres.DSN
}

func crashPostgres(c *campaign, until time.Time) {
	for c.injected == 0 || time.Now().Before(until) {
		pause(context.Background(), 1500*time.Millisecond)
		c.postgres.Crash()
		c.injected++
	}
}

func ownNATS(c *campaign) {
	c.natsDir = c.t.TempDir()
	c.nats = testkit.StartNATS(c.t, testkit.FreePort(c.t), c.natsDir)
	c.s.nats = c.nats.URL
}

func (c *campaign) startNATSAgain() {
	port, err := strconv.Atoi(c.nats.URL[strings.LastIndex(c.nats.URL, ":")+1:])
	if err != nil {
		c.t.Fatal(err)
	}
	c.nats = testkit.StartNATS(c.t, port, c.natsDir)
}

// wipeJetStream loses everything the broker has stored, under it and while it
// is down.
func wipeJetStream(c *campaign, until time.Time) {
	for c.injected == 0 || time.Now().Before(until) {
		rest()
		c.wipe()
		rest()
		c.nats.Kill()
		c.wipe()
		c.startNATSAgain()
		c.injected++
	}
}

func (c *campaign) wipe() {
	entries, err := os.ReadDir(c.natsDir)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		// The broker may write into it meanwhile; whatever is gone is gone.
		_ = os.RemoveAll(filepath.Join(c.natsDir, e.Name()))
	}
}

// stopNATS takes the broker away: for seconds, or half a minute in long runs.
func stopNATS(c *campaign, until time.Time) {
	for c.injected == 0 || time.Now().Before(until) {
		rest()
		c.nats.Kill()
		pause(context.Background(), min(max(time.Until(until), 3*time.Second), 30*time.Second))
		c.startNATSAgain()
		c.injected++
	}
}

// frozen is longer than the leases of these systems.
const frozen = 4 * time.Second

func freezeServer(c *campaign, until time.Time) {
	for c.injected == 0 || time.Now().Before(until) {
		rest()
		c.servers[0].Freeze()
		pause(context.Background(), frozen)
		c.servers[0].Thaw()
		c.injected++
	}
}

func freezeWorker(c *campaign, until time.Time) {
	for c.injected == 0 || time.Now().Before(until) {
		rest()
		c.workers[0].Freeze()
		pause(context.Background(), frozen)
		c.workers[0].Thaw()
		c.injected++
	}
}

func ownClock(c *campaign) {
	c.clock = filepath.Join(c.t.TempDir(), "clock")
	c.setClock(0)
	c.env = append(c.env, "NOETL_CLOCK_FILE="+c.clock)
}

func (c *campaign) setClock(wrong time.Duration) {
	// A whole new file: nobody reads half of one.
	if err := os.WriteFile(c.clock+".new", []byte(wrong.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(c.clock+".new", c.clock); err != nil {
		c.t.Fatal(err)
	}
}

// moveClock moves the clock of all servers to and fro. At the end it is ahead,
// so that no timer lies further in the future than it was set.
func moveClock(c *campaign, until time.Time) {
	for c.injected == 0 || time.Now().Before(until) {
		for _, d := range []time.Duration{20 * time.Second, -20 * time.Second, 0} {
			c.setClock(d)
			c.injected++
			rest()
		}
	}
	c.setClock(2 * time.Hour)
	c.injected++
	rest()
}

// smallDisk puts the database on a file system that can be filled.
func smallDisk(c *campaign) {
	dir, err := os.MkdirTemp("", "noetl-disk-")
	if err != nil {
		c.t.Fatal(err)
	}
	err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=384m")
	if errors.Is(err, os.ErrPermission) {
		os.RemoveAll(dir)
		c.t.Skip("only root can mount a small disk to fill")
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		os.RemoveAll(dir)
	})
	c.disk = dir
	if c.backend == "postgres" {
		c.postgres = testkit.NewCrashablePostgresIn(c.t, dir)
		c.s.dsn = c.postgres.DSN
		return
	}
	c.s.dir = dir
}

// fillDisk leaves no room for a while.
func fillDisk(c *campaign, until time.Time) {
	filler := filepath.Join(c.disk, "filler")
	for c.injected == 0 || time.Now().Before(until) {
		rest()
		f, err := os.Create(filler)
		if err != nil {
			c.t.Fatal(err)
		}
		chunk := make([]byte, 1<<20)
		for err == nil {
			_, err = f.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			c.t.Errorf("fill the disk: %v", err)
		}
		f.Close()
		pause(context.Background(), 2*time.Second)
		if err := os.Remove(filler); err != nil {
			c.t.Error(err)
		}
		c.injected++
	}
}
