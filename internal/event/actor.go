package event

// Actor is who asked for a change, as the meta of the event that records it
// says under "actor".
type Actor struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	By   string `json:"by,omitempty"` // how they showed who they are
}
