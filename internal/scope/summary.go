package scope

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/noetl/noetl-go/internal/jinja"
)

// Bounds of a summary.
const (
	summaryBytes  = 4 << 10  // of a summary, without what was selected
	summaryDepth  = 8        // of maps and lists within each other
	summaryText   = 512      // from here on a text is given by its length
	selectedBytes = 16 << 10 // of one selected value
)

// markSelected is the key of a summary below which selected values stand, each
// whole and under its own name.
const markSelected = "_selected"

// Selection names a part of a result that stays at hand when the result as a
// whole does not.
type Selection struct {
	Path []string `json:"path"`
	As   string   `json:"as"`
}

// Summarise gives the structure of data without its bulk, so that every path
// through it means the same as in the whole: scalars stay, long texts become
// their length, lists keep their first element, maps keep their keys. What is
// left out leaves a mark. Selected parts stand beside it, whole.
func Summarise(data json.RawMessage, selected []Selection) json.RawMessage {
	return summarise(data, selected, Info{})
}

// SummariseSequence is Summarise for the data of a task sequence, {label:
// data}, whose selections may name the keys below the labels.
func SummariseSequence(data json.RawMessage, selected []Selection) json.RawMessage {
	return summarise(data, selected, Info{Sequence: true})
}

func summarise(data json.RawMessage, selected []Selection, info Info) json.RawMessage {
	whole, err := jinja.FromJSON(data)
	if err != nil {
		return json.RawMessage("null")
	}
	s := summary{left: summaryBytes}
	out := s.of(whole, 0)
	if d, ok := out.(*jinja.Dict); ok && len(selected) > 0 {
		if chosen := choose(Step(whole, info).Unwrap(), selected); chosen.Len() > 0 {
			d.Set(markSelected, chosen)
		}
	}
	b, err := jinja.ToJSON(out)
	if err != nil {
		return json.RawMessage("null") // it came from JSON
	}
	return b
}

// choose collects the selected values that are there and not too large.
func choose(whole any, selected []Selection) *jinja.Dict {
	out := jinja.NewDict(len(selected))
	for _, sel := range selected {
		v, ok := follow(whole, sel.Path)
		if !ok {
			continue
		}
		if b, err := jinja.ToJSON(v); err == nil && len(b) <= selectedBytes {
			out.Set(sel.As, v)
		}
	}
	return out
}

// follow walks a path of keys and list positions.
func follow(v any, path []string) (any, bool) {
	for _, name := range path {
		switch at := v.(type) {
		case *jinja.Dict:
			x, ok := at.Get(name)
			if !ok {
				return nil, false
			}
			v = x
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// summary is one summary in the making; left is what it may still take.
type summary struct{ left int }

// reserve is kept of the budget for the marks that say what it did not hold.
const reserve = 256

func (s *summary) of(v any, depth int) any {
	switch v := v.(type) {
	case *jinja.Dict:
		if depth >= summaryDepth {
			return s.tooDeep(v.Len(), v.Keys())
		}
		return s.dict(v, depth)
	case []any:
		if depth >= summaryDepth {
			return s.tooDeep(len(v), nil)
		}
		return s.list(v, depth)
	case string:
		if len(v) > summaryText {
			return s.mark(markLength, int64(len(v)))
		}
	}
	s.spend(v)
	return v
}

func (s *summary) dict(d *jinja.Dict, depth int) any {
	s.left -= len(`{}`)
	out := jinja.NewDict(d.Len())
	for k, v := range d.All() {
		key := len(k) + len(`"":,`)
		if s.left-key-size(v) < reserve {
			return s.cut(out)
		}
		s.left -= key
		out.Set(k, s.of(v, depth+1))
	}
	return out
}

func (s *summary) list(l []any, depth int) any {
	s.left -= len(`[]`)
	if len(l) == 0 {
		return []any{}
	}
	if s.left-size(l[0]) < reserve {
		return s.mark(markTruncated, true)
	}
	return []any{s.of(l[0], depth+1)}
}

func (s *summary) cut(d *jinja.Dict) *jinja.Dict {
	s.left -= len(`"_truncated":true,`)
	d.Set(markTruncated, true)
	return d
}

// tooDeep stands for a map or a list below the depth limit. Keys are named as
// long as there is room.
func (s *summary) tooDeep(count int, keys []string) any {
	d := s.mark(markCount, int64(count))
	if keys == nil {
		return d
	}
	var named []any
	for _, k := range slices.Sorted(slices.Values(keys)) {
		if s.left-len(k)-len(`"",`) < reserve {
			return s.cut(d)
		}
		s.left -= len(k) + len(`"",`)
		named = append(named, k)
	}
	d.Set(markKeys, named)
	s.left -= len(`"_keys":[],`)
	return d
}

func (s *summary) mark(key string, v any) *jinja.Dict {
	d := jinja.NewDict(2)
	d.Set(key, v)
	s.spend(d)
	return d
}

func (s *summary) spend(v any) {
	b, err := jinja.ToJSON(v)
	if err == nil {
		s.left -= len(b)
	}
}

// size is what a value takes at least: all of a scalar, the brackets or the
// mark of anything else.
func size(v any) int {
	switch v := v.(type) {
	case string:
		if len(v) <= summaryText {
			b, _ := jinja.ToJSON(v) // a string always has a JSON form
			return len(b)
		}
	case *jinja.Dict, []any:
	default:
		return 24 // the longest number
	}
	return len(`{"_truncated":true}`)
}
