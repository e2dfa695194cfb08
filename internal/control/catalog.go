package control

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// RemoveEntries takes a version of a path, or all when version is 0, out of
// the catalog and returns them. Executions that began with one go on. None is
// no error. Invalid without a path.
func (p *Plane) RemoveEntries(ctx context.Context, path string, version int) ([]store.Entry, error) {
	path = cleanPath(path)
	if path == "" {
		return nil, event.Errorf(event.Invalid, "path: which resource?")
	}
	taken, err := p.store.RemoveEntries(ctx, path, version, p.now())
	p.metrics.CatalogRemoved.Inc(removal(taken, err))
	if err != nil {
		return nil, storeError("remove catalog entries", err)
	}
	return taken, p.declare(ctx, path)
}

// removal is the word under which a removal is counted: one that found nothing
// is the caller's mistake.
func removal(taken []store.Entry, err error) string {
	if err == nil && len(taken) == 0 {
		return obs.Refused
	}
	return outcome(err)
}

// RestoreEntries brings back what RemoveEntries archived and returns it. None
// is no error. Invalid without a path.
func (p *Plane) RestoreEntries(ctx context.Context, path string, version int) ([]store.Entry, error) {
	path = cleanPath(path)
	if path == "" {
		return nil, event.Errorf(event.Invalid, "path: which resource?")
	}
	back, err := p.store.RestoreEntries(ctx, path, version)
	if err != nil {
		return nil, storeError("restore catalog entries", err)
	}
	return back, p.declare(ctx, path)
}

// AgentFilter selects entries that call themselves agents.
type AgentFilter struct {
	Only         bool     // others are left out
	Capabilities []string // all of them must be offered
}

// Keep returns the entries the filter lets through, in order.
func (f AgentFilter) Keep(entries []store.Entry) []store.Entry {
	if !f.Only && len(f.Capabilities) == 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e store.Entry) bool {
		agent, offers := agentOf(e)
		return f.Only && !agent || slices.ContainsFunc(f.Capabilities, func(c string) bool { return !slices.Contains(offers, c) })
	})
}

// agentOf reads what the metadata of an entry says. A value of a type that
// does not belong there says nothing.
func agentOf(e store.Entry) (agent bool, capabilities []string) {
	var doc struct {
		Metadata struct {
			Agent        any `json:"agent"`
			Capabilities any `json:"capabilities"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(e.Payload, &doc)
	agent, _ = doc.Metadata.Agent.(bool)
	switch c := doc.Metadata.Capabilities.(type) {
	case string:
		capabilities = []string{c}
	case []any:
		for _, v := range c {
			if word, ok := v.(string); ok {
				capabilities = append(capabilities, word)
			}
		}
	}
	return agent || e.Kind == "agent", capabilities
}
