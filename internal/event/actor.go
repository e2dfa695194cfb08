package event

import (
	"slices"
	"strings"
)

// Actor is who asked for a change, as the meta of the event that records it
// says under "actor".
type Actor struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	By   string `json:"by,omitempty"`  // how they showed who they are
	For  string `json:"for,omitempty"` // on whose behalf: the id of who made a schedule
	// Within and Without bound what an execution may start in turn: playbooks
	// below one of the former, where there are any, and below none of the latter.
	Within  []string `json:"within,omitempty"`
	Without []string `json:"without,omitempty"`
}

// MayStart tells whether what an actor started may start the playbook at path.
// Nobody in particular may start all of them.
func (a *Actor) MayStart(path string) bool {
	if a == nil {
		return true
	}
	below := func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
	return (len(a.Within) == 0 || slices.ContainsFunc(a.Within, below)) && !slices.ContainsFunc(a.Without, below)
}
