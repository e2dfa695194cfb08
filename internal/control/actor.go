package control

import (
	"bytes"
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
)

// actedBy writes into the meta of an event who asked for it. Without an actor,
// or with a meta that is no object, the event stays as it is.
func actedBy(e event.Event, a *event.Actor) event.Event {
	if a == nil {
		return e
	}
	who, err := json.Marshal(a)
	meta := bytes.TrimSpace(e.Meta)
	switch {
	case err != nil:
		return e
	case len(meta) == 0 || bytes.Equal(meta, []byte("null")) || bytes.Equal(meta, []byte("{}")):
		e.Meta = append(append([]byte(`{"actor":`), who...), '}')
	case meta[0] == '{':
		open := bytes.TrimSuffix(meta, []byte("}"))
		e.Meta = append(append(append(bytes.Clone(open), `,"actor":`...), who...), '}')
	}
	return e
}
