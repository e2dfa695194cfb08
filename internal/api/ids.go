package api

import (
	"strconv"

	"github.com/noetl/noetl-go/internal/event"
)

// idForm is how the answers about executions write ids: as numbers, which most
// clients decode, or as strings, which browsers can hold. It is decided once
// per server; answers get their ids through it.
type idForm bool

const (
	numberIDs idForm = false
	stringIDs idForm = true
)

// wireID is an id that knows its form.
type wireID struct {
	id   event.ID
	form idForm
}

func (w wireID) MarshalJSON() ([]byte, error) { return w.form.append(nil, w.id), nil }

func (f idForm) of(id event.ID) wireID { return wireID{id, f} }

// orNull is nil, which is written as null, for an id that is not there.
func (f idForm) orNull(id event.ID) *wireID {
	if id == 0 {
		return nil
	}
	w := f.of(id)
	return &w
}

// list is never nil, so that it is written as a list even when it is empty.
func (f idForm) list(ids []event.ID) []wireID {
	out := make([]wireID, len(ids))
	for i, id := range ids {
		out[i] = f.of(id)
	}
	return out
}

func (f idForm) append(b []byte, id event.ID) []byte {
	if f == stringIDs {
		b = append(b, '"')
		b = strconv.AppendInt(b, int64(id), 10)
		return append(b, '"')
	}
	return strconv.AppendInt(b, int64(id), 10)
}

// appendOptional writes null when there is no id.
func (f idForm) appendOptional(b []byte, id event.ID) []byte {
	if id == 0 {
		return append(b, "null"...)
	}
	return f.append(b, id)
}
