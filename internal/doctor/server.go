package doctor

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/client"
)

// Remote is a running server as a client sees it.
type Remote interface {
	Health(ctx context.Context) (client.Health, error)
	Workers(ctx context.Context, f client.WorkerFilter) ([]client.WorkerRow, error)
}

// Server is a running server.
type Server struct {
	Remote  Remote
	URL     string
	Version string   // of this program
	Pools   []string // that somebody should serve
}

// Name implements Check.
func (Server) Name() string { return "server" }

// Look implements Check.
func (s Server) Look(ctx context.Context) []Finding {
	h, err := s.Remote.Health(ctx)
	if err != nil {
		return []Finding{failed(s.URL, "see that the server runs and that --server-url is right", err)}
	}
	found := []Finding{ok(s.URL, "the server answers (version %s)", h.Version)}
	if h.Version != s.Version {
		found = append(found, warn(s.URL, "use the same version on both sides", "the server is version %s, this program is %s", h.Version, s.Version))
	}
	for part, state := range map[string]string{"database": h.Database, "NATS": h.NATS} {
		if !slices.Contains([]string{"ok", "connected", "healthy", "up", ""}, strings.ToLower(state)) {
			found = append(found, fail(s.URL, "check the "+part+" of the server", "the server says of its %s: %s", part, state))
		}
	}
	return append(found, s.workers(ctx)...)
}

func (s Server) workers(ctx context.Context) []Finding {
	rows, err := s.Remote.Workers(ctx, client.WorkerFilter{Kind: "worker_pool"})
	if err != nil {
		return []Finding{failed(s.URL, "see who may list workers", err)}
	}
	pools, versions := map[string]int{}, map[string]bool{}
	for _, w := range rows {
		if w.Status == "offline" {
			continue
		}
		for _, name := range poolsOf(w.Labels) {
			pools[name]++
		}
		var said struct {
			Version string `json:"version"`
		}
		if json.Unmarshal(w.Runtime, &said) == nil && said.Version != "" {
			versions[said.Version] = true
		}
	}
	var found []Finding
	for _, name := range s.Pools {
		if pools[name] == 0 {
			found = append(found, warn(s.URL, "start one with: noetl worker --pools "+name, "no worker serves pool %s: its commands wait", name))
		} else {
			found = append(found, ok(s.URL, "%s in pool %s", count(pools[name], "worker"), name))
		}
	}
	if len(versions) > 1 {
		found = append(found, warn(s.URL, "upgrade the older workers", "the workers have different versions: %s", strings.Join(slices.Sorted(maps.Keys(versions)), ", ")))
	}
	return found
}

func poolsOf(labels json.RawMessage) []string {
	var said struct {
		Pool  string   `json:"pool_name"`
		Pools []string `json:"pools"`
	}
	_ = json.Unmarshal(labels, &said) // what cannot be read says nothing
	if len(said.Pools) > 0 {
		return said.Pools
	}
	if said.Pool != "" {
		return []string{said.Pool}
	}
	return []string{"shared"}
}
