package replay

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
)

// Resolution tells for one reference of a state whether the value is still
// there, and what it is; never the value itself.
type Resolution struct {
	Scope     string   `json:"scope"` // execution, frame or business_object
	EventID   event.ID `json:"event_id"`
	FrameID   string   `json:"frame_id,omitempty"`
	ObjectKey string   `json:"object_key,omitempty"`
	Summary   Summary  `json:"reference_summary"`
	Found     Finding  `json:"resolution"`
}

// Finding is what resolving a reference came to.
type Finding struct {
	Ref       *string   `json:"ref"` // the locator; null when the reference has none
	Resolved  bool      `json:"resolved"`
	Checksum  *Checksum `json:"checksum"`
	SizeBytes *int64    `json:"size_bytes"` // of the canonical JSON, as is the checksum
	RowCount  *int64    `json:"row_count"`  // of a list
	ValueType *string   `json:"value_type"`
	Error     *string   `json:"error"`
}

// ResolutionSummary counts resolutions.
type ResolutionSummary struct {
	Total       int      `json:"total"`
	Resolved    int      `json:"resolved"`
	Unresolved  int      `json:"unresolved"`
	UniqueRefs  int      `json:"unique_refs"`
	AllResolved bool     `json:"all_resolved"`
	Checksum    Checksum `json:"checksum"` // over the resolutions
}

// Resolve looks up every reference of a state, each distinct locator once.
func (s *State) Resolve(find func(locator string) Finding) ([]Resolution, ResolutionSummary) {
	found := map[string]Finding{}
	rows := s.references()
	sum := ResolutionSummary{Total: len(rows)}
	for i := range rows {
		row := &rows[i]
		if ref := row.Found.Ref; ref == nil {
			why := "the reference does not say where the value is"
			row.Found.Error = &why
		} else {
			if _, known := found[*ref]; !known {
				found[*ref] = find(*ref)
			}
			row.Found = found[*ref]
			row.Found.Ref = ref
		}
		if row.Found.Resolved {
			sum.Resolved++
		}
	}
	sum.Unresolved, sum.UniqueRefs = sum.Total-sum.Resolved, len(found)
	sum.AllResolved, sum.Checksum = sum.Unresolved == 0, Sum(rows)
	return rows, sum
}

// references lists the references of a state with where they stand.
func (s *State) references() []Resolution {
	rows := []Resolution{}
	add := func(r Resolution, reference json.RawMessage) {
		r.Found.Ref = locator(reference)
		rows = append(rows, r)
	}
	for _, v := range s.Execution.PayloadRefs {
		add(Resolution{Scope: "execution", EventID: v.EventID, Summary: v.Summary}, v.Reference)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Frames)) {
		if fr := s.Frames[id]; fr.OutputRef != nil {
			add(Resolution{Scope: "frame", EventID: fr.TerminalEventID, FrameID: id, Summary: *fr.OutputRefSummary}, fr.OutputRef)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Objects)) {
		for _, v := range s.Objects[key].PayloadRefs {
			add(Resolution{Scope: "business_object", EventID: v.EventID, ObjectKey: key, Summary: v.Summary}, v.Reference)
		}
	}
	return rows
}

// locator is where a reference says its value is. Our workers call the place
// of a value outside our store its logical uri.
func locator(reference json.RawMessage) *string {
	if s := stringOf(reference); s != nil {
		return s
	}
	ref := objectOf(reference)
	if kind := ref.string("kind"); kind != nil && *kind == "payload_store" {
		return first(ref.string("uri"), ref.string("sha256"))
	}
	rows := ref.object("rows_ref")
	return first(
		ref.string("ref"), ref.string("uri"), ref.string("locator"),
		rows.string("ref"), rows.string("uri"), rows.string("locator"),
		ref.string("logical_uri"),
	)
}

// FindingOf describes a value that was found.
func FindingOf(value json.RawMessage) Finding {
	text, err := event.Canonical(value)
	if err != nil {
		return NotFound("the value is not JSON")
	}
	size, kind, sum := int64(len(text)), kindOf(text), Sum(json.RawMessage(text))
	f := Finding{Resolved: true, Checksum: &sum, SizeBytes: &size, ValueType: &kind}
	var list []json.RawMessage
	if kind == "array" && json.Unmarshal(text, &list) == nil {
		n := int64(len(list))
		f.RowCount = &n
	}
	return f
}

// NotFound says why there is no value.
func NotFound(why string) Finding { return Finding{Error: &why} }

func kindOf(text []byte) string {
	switch text[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
