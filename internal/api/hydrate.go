package api

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	hydrateMost  = 256     // values one answer looks up
	hydrateBytes = 8 << 20 // of them in one answer
	unwrapDepth  = 5       // objects within each other that readers unwrap
	refDepth     = 2       // references that lead to references
)

// hydration puts stored values in the place of references to them, within the
// bounds of one answer. What cannot be found stays a reference.
type hydration struct {
	fetch func(ctx context.Context, ref string) (json.RawMessage, error)
	found map[string]json.RawMessage // nil when there is no such value
	left  int                        // look-ups
	bytes int64
}

func newHydration(fetch func(ctx context.Context, ref string) (json.RawMessage, error)) *hydration {
	return &hydration{fetch: fetch, found: make(map[string]json.RawMessage), left: hydrateMost, bytes: hydrateBytes}
}

// visibleResult finds a value for a caller. What a playbook returns may name
// any value, also one of an execution the caller may not see.
func (s *Server) visibleResult(ctx context.Context, ref string) (json.RawMessage, error) {
	if p := passageOf(ctx); p.narrowed() {
		plain, _, _ := strings.Cut(ref, "#")
		of, err := event.ParseResultRef(plain)
		if err != nil {
			return nil, err
		}
		x, err := s.opt.Plane.Execution(ctx, of.Execution)
		if err == nil && !p.who.MayAt(p.need.authRole(), x.Path) {
			err = event.Errorf(event.NotFound, "Execution not found: %d", of.Execution)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.opt.Plane.Result(ctx, ref)
}

// reference is where a value is kept, and how large it is if that is known.
type reference struct {
	ref   string
	bytes int64
}

// hydrate returns result with its data, when a reference stands for it. It
// fails only when the store does not answer.
func (h *hydration) hydrate(ctx context.Context, result json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(result, []byte(`ref"`)) {
		return result, nil
	}
	filled, err := h.descend(ctx, result, 0, reference{})
	if err != nil || filled == nil {
		return result, err
	}
	return filled, nil
}

// descend follows the objects readers unwrap, notes the innermost reference on
// the way and puts its value where they end: below data. It returns nil when
// nothing changes.
func (h *hydration) descend(ctx context.Context, raw json.RawMessage, level int, at reference) (json.RawMessage, error) {
	var obj map[string]json.RawMessage
	if json.Unmarshal(raw, &obj) != nil {
		return nil, nil
	}
	if found, ok := referenceIn(obj); ok {
		at = found
	}
	for _, key := range []string{"context", "result"} {
		if level == unwrapDepth || !isJSONObject(obj[key]) {
			continue
		}
		inner, err := h.descend(ctx, obj[key], level+1, at)
		if err != nil || inner == nil {
			return nil, err
		}
		obj[key] = inner
		return encodeObject(obj)
	}
	if at.ref == "" {
		return nil, nil
	}
	value, err := h.value(ctx, at)
	if err != nil || value == nil {
		return nil, err
	}
	obj["data"] = value
	return encodeObject(obj)
}

// value finds what a reference stands for; nil when it cannot be had.
func (h *hydration) value(ctx context.Context, at reference) (json.RawMessage, error) {
	for range refDepth {
		if at.bytes > h.bytes {
			return nil, nil
		}
		raw, err := h.lookUp(ctx, at.ref)
		if err != nil || raw == nil {
			return nil, err
		}
		next, ok := asReference(raw)
		if !ok {
			if int64(len(raw)) > h.bytes {
				return nil, nil
			}
			h.bytes -= int64(len(raw))
			return raw, nil
		}
		at = next
	}
	return nil, nil
}

func (h *hydration) lookUp(ctx context.Context, ref string) (json.RawMessage, error) {
	if raw, known := h.found[ref]; known {
		return raw, nil
	}
	if h.left == 0 {
		return nil, nil
	}
	h.left--
	raw, err := h.fetch(ctx, ref)
	if code := event.CodeOf(err); err != nil && code != event.NotFound && code != event.Invalid && code != event.Limit {
		return nil, err
	}
	if err != nil {
		raw = nil
	}
	h.found[ref] = raw
	return raw, nil
}

// referenceIn looks for the places where a result says that its data is kept
// elsewhere: reference.ref, or _ref in the place of the data.
func referenceIn(obj map[string]json.RawMessage) (reference, bool) {
	if r, ok := asReference(obj["data"]); ok {
		return r, true
	}
	if !isJSONObject(obj["reference"]) {
		return reference{}, false
	}
	return readReference(obj["reference"], true)
}

// asReference tells whether a value is nothing but a reference.
func asReference(raw json.RawMessage) (reference, bool) {
	if !isJSONObject(raw) || !bytes.Contains(raw, []byte(`ref"`)) {
		return reference{}, false
	}
	return readReference(raw, false)
}

// readReference reads {_ref} or {kind: result_ref, ref, meta}. The kind may be
// missing where only a reference can stand.
func readReference(raw json.RawMessage, sure bool) (reference, bool) {
	var r struct {
		Kind   string `json:"kind"`
		Hidden string `json:"_ref"`
		Ref    string `json:"ref"`
		Meta   struct {
			Bytes int64 `json:"bytes"`
		} `json:"meta"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return reference{}, false
	}
	switch {
	case r.Hidden != "":
		return reference{ref: r.Hidden}, true
	case r.Ref != "" && (sure || r.Kind == "result_ref"):
		return reference{ref: r.Ref, bytes: r.Meta.Bytes}, true
	}
	return reference{}, false
}

func isJSONObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

// encodeObject writes text as it is: a value must not change on its way.
func encodeObject(obj map[string]json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(obj); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
