package replay

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
)

// Sum is the checksum over the canonical JSON of v.
func Sum(v any) Checksum {
	return digest(func(w io.Writer) { writeValue(w, v) })
}

// summed is a copy of s with its checksums: first those of the parts, then the
// one over everything including them. Each part is written entry by entry, so
// that summing a large state takes little more memory than the state.
func (s *State) summed() *State {
	out := *s
	out.Checksum = nil
	out.Checksums = &Checksums{
		Execution:      Sum(s.Execution),
		Stage:          digest(func(w io.Writer) { writeMap(w, s.Stages) }),
		Frame:          digest(func(w io.Writer) { writeMap(w, s.Frames) }),
		Command:        digest(func(w io.Writer) { writeMap(w, s.Commands) }),
		BusinessObject: digest(func(w io.Writer) { writeMap(w, s.Objects) }),
		Loop:           digest(func(w io.Writer) { writeMap(w, s.Loops) }),
	}
	sum := digest(out.write)
	out.Checksum = &sum
	return &out
}

// write writes the canonical JSON of the state. The maps go in where the other
// members, in canonical order, leave room for them.
func (s *State) write(w io.Writer) {
	rest := *s
	rest.Stages, rest.Frames, rest.Commands, rest.Objects, rest.Loops = nil, nil, nil, nil, nil
	var members map[string]json.RawMessage
	if err := json.Unmarshal(encode(&rest), &members); err != nil {
		panic("replay: decode own state: " + err.Error())
	}
	parts := map[string]func(io.Writer){
		"stages":           func(w io.Writer) { writeMap(w, s.Stages) },
		"frames":           func(w io.Writer) { writeMap(w, s.Frames) },
		"commands":         func(w io.Writer) { writeMap(w, s.Commands) },
		"business_objects": func(w io.Writer) { writeMap(w, s.Objects) },
		"loops":            func(w io.Writer) { writeMap(w, s.Loops) },
	}
	writeMembers(w, members, func(w io.Writer, name string, v json.RawMessage) {
		if part, ok := parts[name]; ok {
			part(w)
			return
		}
		write(w, canonical(v))
	})
}

func writeMap[V any](w io.Writer, m map[string]V) {
	writeMembers(w, m, func(w io.Writer, _ string, v V) { writeValue(w, v) })
}

func writeMembers[V any](w io.Writer, m map[string]V, member func(w io.Writer, name string, v V)) {
	next := byte('{')
	for _, k := range slices.Sorted(maps.Keys(m)) {
		write(w, append(event.AppendCanonicalText([]byte{next}, k), ':'))
		member(w, k, m[k])
		next = ','
	}
	if next == '{' {
		write(w, []byte{'{'})
	}
	write(w, []byte{'}'})
}

func writeValue(w io.Writer, v any) { write(w, canonical(encode(v))) }

// write hands b to a hash, which takes everything.
func write(w io.Writer, b []byte) { _, _ = w.Write(b) }

func digest(f func(w io.Writer)) Checksum {
	h := sha256.New()
	w := bufio.NewWriter(h)
	f(w)
	_ = w.Flush() // into a hash, which takes everything
	return Checksum{Type: "sha256", Value: hex.EncodeToString(h.Sum(nil))}
}

// encode is the JSON of a value of ours, with text as it is.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("replay: encode own state: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// canonical is the canonical text of JSON that is known to be valid.
func canonical(raw []byte) json.RawMessage {
	b, err := event.Canonical(raw)
	if err != nil {
		panic("replay: canonical form of own value: " + err.Error())
	}
	return b
}
