package replay

import (
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// Projection names a part of the state.
type Projection string

// The projections.
const (
	OfExecution      Projection = "execution"
	OfStage          Projection = "stage"
	OfFrame          Projection = "frame"
	OfCommand        Projection = "command"
	OfBusinessObject Projection = "business_object"
	OfLoop           Projection = "loop"
	All              Projection = "all"
)

var projections = []Projection{OfExecution, OfStage, OfFrame, OfCommand, OfBusinessObject, OfLoop, All}

// ParseProjection reads the name of a projection; nothing means all. The error
// is BadRequest and lists the names there are.
func ParseProjection(name string) (Projection, error) {
	if name == "" {
		return All, nil
	}
	if p := Projection(name); slices.Contains(projections, p) {
		return p, nil
	}
	names := make([]string, len(projections))
	for i, p := range projections {
		names[i] = string(p)
	}
	return "", event.Errorf(event.BadRequest, "projection: %q is none; want one of %s", name, strings.Join(names, ", "))
}
