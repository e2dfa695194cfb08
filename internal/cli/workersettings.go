package cli

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// span is a length of time that is written with a unit, or as a number of
// seconds the way other deployments do.
type span time.Duration

// UnmarshalText reads 25s, 1m30s or 25.
func (s *span) UnmarshalText(text []byte) error {
	d, err := parseSpan(string(text))
	*s = span(d)
	return err
}

func parseSpan(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= -1 && n < 1e9 {
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q: want a time such as 25s, or a number of seconds", text)
	}
	return d, nil
}

// String writes it with units.
func (s span) String() string { return time.Duration(s).String() }

// workerPairs are settings that have two names. Both may be set to the same.
var workerPairs = [][2]string{
	{"WORKER_MAX_CONCURRENT", "NOETL_WORKER_MAX_INFLIGHT_COMMANDS"},
	{"WORKER_POOL_NAME", "NOETL_WORKER_POOL_NAME"},
	{"WORKER_METRICS_BIND", "NOETL_WORKER_METRICS_BIND"},
	{"NOETL_COMMAND_HEARTBEAT", "NOETL_COMMAND_HEARTBEAT_INTERVAL_SECONDS"},
	{"NOETL_WORKER_DRAIN", "NOETL_WORKER_DRAIN_SECONDS"},
	{"NATS_FILTER_SUBJECT", "NOETL_FEED_FILTER_SUBJECT"},
}

// workerSettings must not be blank.
var workerSettings = []string{
	"NOETL_SERVER_URL", "NATS_URL", "NATS_USER", "NATS_PASSWORD", "NATS_TOKEN", "WORKER_ID", "NOETL_WORKER_POOL_SEGMENTS",
	"WORKER_HEARTBEAT_INTERVAL", "NOETL_WORKER_COMMAND_TIMEOUT_SECONDS", "NOETL_WORKER_SPOOL_DIR", "NOETL_WORKER_SLOTS_CPU", "NOETL_WORKER_SLOTS_IO",
}

// checkPairs refuses blank settings, and two names of one that disagree.
func checkPairs() error {
	names := slices.Clone(workerSettings)
	for _, pair := range workerPairs {
		names = append(names, pair[0], pair[1])
	}
	if err := refuseBlank(names...); err != nil {
		return err
	}
	for _, pair := range workerPairs {
		a, b := os.Getenv(pair[0]), os.Getenv(pair[1])
		if a != "" && b != "" && !sameSetting(a, b) {
			return invalidf("%s is %q and %s is %q: they are names of one setting, so set one of them or both to the same", pair[0], a, pair[1], b)
		}
	}
	return nil
}

func sameSetting(a, b string) bool {
	if a = strings.TrimSpace(a); a == strings.TrimSpace(b) {
		return true
	}
	x, err := parseSpan(a)
	if err != nil {
		return false
	}
	y, err := parseSpan(b)
	return err == nil && x == y
}

// pools are those the worker serves: as named, or the one of its filter.
func (c *workerCommand) pools() ([]string, error) {
	filter := os.Getenv(workerPairs[5][0])
	if filter == "" {
		filter = os.Getenv(workerPairs[5][1])
	}
	pools := c.Pools
	if filter != "" {
		pool, ok := filteredPool(filter)
		switch {
		case !ok && len(pools) == 0:
			return nil, invalidf("NATS_FILTER_SUBJECT %q names no pool: write it like noetl.commands.system.>, or name the pools with NOETL_WORKER_POOL_SEGMENTS", filter)
		case ok && len(pools) > 0 && !(len(pools) == 1 && pools[0] == pool):
			return nil, invalidf("NATS_FILTER_SUBJECT %q is of pool %s, but the worker is to serve %s: set one of them", filter, pool, strings.Join(pools, ", "))
		case ok:
			pools = []string{pool}
		}
	}
	for i, pool := range pools {
		pools[i] = strings.TrimSpace(pool)
		if err := event.CheckPool(pools[i]); err != nil {
			return nil, err
		}
	}
	return pools, nil
}

// filteredPool is the token behind commands in a subject. A bare subject and a
// wildcard name none.
func filteredPool(subject string) (string, bool) {
	tokens := strings.Split(strings.TrimSpace(subject), ".")
	i := slices.Index(tokens, "commands")
	if i < 0 || i+1 >= len(tokens) || event.CheckPool(tokens[i+1]) != nil {
		return "", false
	}
	return tokens[i+1], true
}

// check refuses values that make no sense together with their names.
func (c *workerCommand) check() error {
	switch {
	case time.Duration(c.Heartbeat) < 100*time.Millisecond:
		return invalidf("--heartbeat %s (NOETL_COMMAND_HEARTBEAT): want at least 100ms", c.Heartbeat)
	case time.Duration(c.Pulse) < time.Second || time.Duration(c.Pulse) > 45*time.Second:
		return invalidf("--pulse %s (WORKER_HEARTBEAT_INTERVAL): want 1s to 45s; a worker that is silent for a minute counts as offline", c.Pulse)
	case c.Drain < 0:
		return invalidf("--drain %s (NOETL_WORKER_DRAIN_SECONDS): want 0 or more", c.Drain)
	case c.CommandTimeout <= 0:
		return invalidf("--command-timeout %s (NOETL_WORKER_COMMAND_TIMEOUT_SECONDS): want more than 0", c.CommandTimeout)
	case c.SlotsCPU < 0 || c.SlotsIO < 0:
		return invalidf("--slots-cpu %d, --slots-io %d (NOETL_WORKER_SLOTS_CPU, NOETL_WORKER_SLOTS_IO): want a number from 1, or 0 for no limit", c.SlotsCPU, c.SlotsIO)
	case os.Getenv("NATS_TOKEN") != "" && os.Getenv("NATS_USER") != "":
		return invalidf("NATS_TOKEN and NATS_USER are both set: log in to NATS in one way")
	case os.Getenv("NATS_PASSWORD") != "" && os.Getenv("NATS_USER") == "":
		return invalidf("NATS_PASSWORD is set, but NATS_USER is not: set it too")
	}
	if c.MetricsListen == "" {
		return nil
	}
	if _, port, err := net.SplitHostPort(c.MetricsListen); err != nil || port == "" {
		return invalidf("--metrics-listen %q (WORKER_METRICS_BIND): want HOST:PORT such as 127.0.0.1:9090", c.MetricsListen)
	}
	return nil
}

// printConfig writes the settings in effect, secrets masked.
func (c *workerCommand) printConfig(out io.Writer, id, token string, pools []string, slots int) {
	line := func(name string, value any) { fmt.Fprintf(out, "%-18s %v\n", name, value) }
	or := func(value, none string) string {
		if value == "" {
			return none
		}
		return value
	}
	limit := func(n int) string {
		if n == 0 {
			return "no limit"
		}
		return strconv.Itoa(n)
	}
	line("id", id)
	line("server-url", maskURL(c.ServerURL))
	line("api-token", masked(token))
	line("tls-ca", or(os.Getenv("NOETL_TLS_CA"), "-"))
	line("tls-client-cert", or(os.Getenv("NOETL_TLS_CLIENT_CERT"), "-"))
	line("nats-url", maskURLs(c.NATSURL))
	line("nats-user", or(os.Getenv("NATS_USER"), "-"))
	line("nats-password", masked(os.Getenv("NATS_PASSWORD")))
	line("nats-token", masked(os.Getenv("NATS_TOKEN")))
	line("pools", strings.Join(pools, ","))
	line("pool-name", or(c.PoolName, pools[0]))
	line("slots", slots)
	line("slots-cpu", limit(c.SlotsCPU))
	line("slots-io", limit(c.SlotsIO))
	line("heartbeat", c.Heartbeat)
	line("pulse", c.Pulse)
	line("drain", c.Drain)
	line("command-timeout", c.CommandTimeout)
	line("spool-dir", or(c.SpoolDir, "default"))
	line("metrics-listen", or(c.MetricsListen, "off"))
	line("egress-profile", c.EgressProfile)
}

func masked(secret string) string {
	if secret == "" {
		return "-"
	}
	return "***"
}

// maskURL hides everything before the host but the scheme.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "***"
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	u.RawQuery = ""
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", "***")
}

func maskURLs(list string) string {
	all := strings.Split(list, ",")
	for i := range all {
		all[i] = maskURL(strings.TrimSpace(all[i]))
	}
	return strings.Join(all, ",")
}
