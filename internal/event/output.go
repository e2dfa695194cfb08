package event

// Output is what the author of a step asked for about its result: which parts
// stay at hand when the whole is kept elsewhere, and from what size on it is.
type Output struct {
	Select    []Selection `json:"select,omitempty"`
	InlineMax int         `json:"inline_max_bytes,omitempty"` // 0 = the worker's own limit
	Store     string      `json:"store,omitempty"`            // where a large result is kept, see ResultOptions
	Scope     string      `json:"scope,omitempty"`
	TTL       string      `json:"ttl,omitempty"`
}

// Selection is one part of a result: the value at Path, known as As.
type Selection struct {
	Path []string `json:"path"`
	As   string   `json:"as"`
}
