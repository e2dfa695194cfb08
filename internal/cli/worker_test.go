package cli

import (
	"bytes"
	"strings"
	"testing"
)

// configured runs noetl worker --print-config with settings NAME=VALUE and
// flags, and returns the exit code and all that was printed.
func configured(t *testing.T, words ...string) (int, string) {
	t.Helper()
	args := []string{"worker", "--print-config", "--nats-url", "nats://u:hunter2@127.0.0.1:4222,nats://tok3n@b"}
	for _, w := range words {
		name, value, setting := strings.Cut(w, "=")
		if setting && !strings.HasPrefix(w, "-") {
			t.Setenv(name, value)
			continue
		}
		args = append(args, w)
	}
	var out bytes.Buffer
	code := Main(t.Context(), args, &Env{Stdout: &out, Stderr: &out})
	return code, out.String()
}

func TestWorkerSettingsInEffectAreShown(t *testing.T) {
	for name, c := range map[string]struct {
		given []string
		want  []string // name and value, one blank between
	}{
		"nothing said": {
			nil,
			[]string{"pools shared,system,subscription", "pool-name shared", "drain 25s", "heartbeat 15s", "metrics-listen off", "slots-cpu no limit", "spool-dir default"},
		},
		"one spelling": {
			[]string{"WORKER_MAX_CONCURRENT=3", "WORKER_POOL_NAME=gpu", "WORKER_METRICS_BIND=0.0.0.0:9090", "NOETL_WORKER_DRAIN=1m", "NATS_FILTER_SUBJECT=noetl.commands.system.>"},
			[]string{"slots 3", "pool-name gpu", "metrics-listen 0.0.0.0:9090", "drain 1m0s", "pools system"},
		},
		"the other": {
			[]string{"NOETL_WORKER_MAX_INFLIGHT_COMMANDS=3", "NOETL_WORKER_POOL_NAME=gpu", "NOETL_WORKER_METRICS_BIND=:9090", "NOETL_WORKER_DRAIN_SECONDS=60", "NOETL_FEED_FILTER_SUBJECT=noetl.commands.system.shard.3.>", "WORKER_HEARTBEAT_INTERVAL=20", "NOETL_COMMAND_HEARTBEAT_INTERVAL_SECONDS=2.5", "NOETL_WORKER_COMMAND_TIMEOUT_SECONDS=180"},
			[]string{"slots 3", "pool-name gpu", "metrics-listen :9090", "drain 1m0s", "pools system", "pulse 20s", "heartbeat 2.5s", "command-timeout 3m0s"},
		},
		"both, and they agree": {
			[]string{"NOETL_WORKER_DRAIN=1m", "NOETL_WORKER_DRAIN_SECONDS=60", "WORKER_MAX_CONCURRENT=3", "NOETL_WORKER_MAX_INFLIGHT_COMMANDS=3"},
			[]string{"drain 1m0s", "slots 3"},
		},
		"a flag wins": {
			[]string{"NOETL_WORKER_DRAIN_SECONDS=60", "WORKER_MAX_CONCURRENT=3", "--drain", "0", "--max-workers", "5", "start"},
			[]string{"drain 0s", "slots 5"},
		},
		"a filter without a pool, and pools": {
			[]string{"NATS_FILTER_SUBJECT=noetl.commands.>", "NOETL_WORKER_POOL_SEGMENTS=legacy,shared"},
			[]string{"pools legacy,shared", "pool-name legacy"},
		},
		"a token of its own": {
			[]string{"--token=tok3n"},
			[]string{"api-token ***"},
		},
		"secrets": {
			[]string{"NATS_USER=u", "NATS_PASSWORD=hunter2", "NOETL_INTERNAL_API_TOKEN=tok3n"},
			[]string{"nats-url nats://***@127.0.0.1:4222,nats://***@b", "nats-user u", "nats-password ***", "api-token ***", "nats-token -"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := configured(t, c.given...)
			if code != ExitOK {
				t.Fatalf("exit code %d: %s", code, out)
			}
			var lines []string
			for line := range strings.Lines(out) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				lines = append(lines, name+" "+strings.TrimSpace(value))
			}
			for _, want := range c.want {
				if !strings.Contains("\n"+strings.Join(lines, "\n")+"\n", "\n"+want+"\n") {
					t.Errorf("lacks %q:\n%s", want, out)
				}
			}
			if strings.Contains(out, "hunter2") || strings.Contains(out, "tok3n") {
				t.Errorf("a secret is shown:\n%s", out)
			}
		})
	}
}

func TestWrongWorkerSettingsStopTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		given []string
		says  string
	}{
		"two slots":             {[]string{"WORKER_MAX_CONCURRENT=3", "NOETL_WORKER_MAX_INFLIGHT_COMMANDS=4"}, "NOETL_WORKER_MAX_INFLIGHT_COMMANDS"},
		"two drains":            {[]string{"NOETL_WORKER_DRAIN=1m", "NOETL_WORKER_DRAIN_SECONDS=61"}, "NOETL_WORKER_DRAIN_SECONDS"},
		"two filters":           {[]string{"NATS_FILTER_SUBJECT=noetl.commands.a.>", "NOETL_FEED_FILTER_SUBJECT=noetl.commands.b.>"}, "NOETL_FEED_FILTER_SUBJECT"},
		"a filter and pools":    {[]string{"NATS_FILTER_SUBJECT=noetl.commands.a.>", "NOETL_WORKER_POOL_SEGMENTS=b"}, "is of pool a"},
		"a bare filter":         {[]string{"NATS_FILTER_SUBJECT=noetl.commands"}, "names no pool"},
		"a wildcard":            {[]string{"NOETL_FEED_FILTER_SUBJECT=noetl.commands.*.>"}, "names no pool"},
		"a blank name":          {[]string{"WORKER_ID= "}, "WORKER_ID is set but blank"},
		"a blank second name":   {[]string{"NOETL_WORKER_POOL_NAME="}, "NOETL_WORKER_POOL_NAME is set but blank"},
		"a pool with a dot":     {[]string{"NOETL_WORKER_POOL_SEGMENTS=a.b"}, "a.b"},
		"a negative drain":      {[]string{"NOETL_WORKER_DRAIN_SECONDS=-1"}, "NOETL_WORKER_DRAIN_SECONDS"},
		"no duration":           {[]string{"NOETL_WORKER_DRAIN=soon"}, "a number of seconds"},
		"a rare pulse":          {[]string{"WORKER_HEARTBEAT_INTERVAL=2m"}, "offline"},
		"no time for a command": {[]string{"NOETL_WORKER_COMMAND_TIMEOUT_SECONDS=0"}, "NOETL_WORKER_COMMAND_TIMEOUT_SECONDS"},
		"negative slots":        {[]string{"NOETL_WORKER_SLOTS_CPU=-1"}, "NOETL_WORKER_SLOTS_CPU"},
		"an address":            {[]string{"WORKER_METRICS_BIND=9090"}, "HOST:PORT"},
		"two logins":            {[]string{"NATS_TOKEN=t", "NATS_USER=u"}, "one way"},
		"a token nowhere":       {[]string{"--token=@/there/is/none"}, "/there/is/none"},
		"a password alone":      {[]string{"NATS_PASSWORD=p"}, "NATS_USER is not"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, out := configured(t, c.given...); code == ExitOK || !strings.Contains(out, c.says) {
				t.Errorf("exit code %d without %q: %s", code, c.says, out)
			}
		})
	}
}
