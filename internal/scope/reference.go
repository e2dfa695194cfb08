package scope

import (
	"encoding/json"
	"slices"

	"github.com/noetl/noetl-go/internal/jinja"
)

// Marks that a summary leaves where something was left out. An author's own
// data may hold such keys too; then reading it costs a look at the whole.
const (
	markLength    = "_len"       // of a long text
	markCount     = "_count"     // of entries below the depth limit
	markKeys      = "_keys"      // of a map below the depth limit
	markTruncated = "_truncated" // the budget was used up here
)

// ViewTasks is the fragment of a reference to the result of a list of tasks:
// who follows it sees the keys of each task's data beside the labels, as
// templates do.
const ViewTasks = "tasks"

// Tasks is the view of {label: data} that ViewTasks asks for.
func Tasks(data json.RawMessage) json.RawMessage {
	return Step(data, Info{Sequence: true}).JSON()
}

// Selecting is v with names for parts of it.
func (v *Value) Selecting(parts []Selection) *Value {
	if len(parts) == 0 {
		return v
	}
	c := *v
	c.info.Select = parts
	return &c
}

// Bound is v with a way to find the whole of a summarised value.
func (v *Value) Bound(f Fetch) *Value {
	if f == nil || v.info.Ref == nil && (v.info.Loop == nil || len(v.info.Loop.Refs) == 0) {
		return v
	}
	c := *v
	c.fetch = f
	if c.raw != nil {
		c.data, c.done = nil, false
	} else if list, ok := c.data.([]any); ok && c.info.Loop != nil {
		c.data = boundResults(list, f)
	}
	return &c
}

// boundResults are a loop's results, with the way to the whole for those that
// are summaries.
func boundResults(results []any, f Fetch) []any {
	out := slices.Clone(results)
	for i, x := range out {
		if v, ok := x.(*Value); ok {
			out[i] = v.Bound(f)
		}
	}
	return out
}

// all is the whole value, found once. One that could not be found is looked
// for again.
func (v *Value) all() any {
	if v.held {
		return v.whole
	}
	whole, err := jinja.FromJSON(v.fetch(v.info.Ref))
	if err != nil {
		return nil
	}
	if d, ok := whole.(*jinja.Dict); ok && v.info.Ref.Sequence {
		whole = flatten(d)
	}
	v.whole, v.held = whole, true
	return v.whole
}

// referenced answers for a summarised value what its summary knows, and looks
// at the whole for the rest.
func (v *Value) referenced(name string) (any, bool) {
	switch name {
	case "_ref":
		if v.info.Ref.Sequence {
			return v.info.Ref.Ref + "#" + ViewTasks, true
		}
		return v.info.Ref.Ref, true
	case "_store":
		return v.info.Ref.Store, true
	case "_uri":
		return v.info.Ref.URI, v.info.Ref.URI != ""
	}
	if x, ok := v.atHand(name); ok {
		return x, true
	}
	return lazy{v, v.decoded(), nil}.Attr(name)
}

// atHand finds a selected value, which stands whole beside the summary.
func (v *Value) atHand(name string) (any, bool) {
	d, ok := v.decoded().(*jinja.Dict)
	if !ok {
		return nil, false
	}
	x, _ := d.Get(markSelected)
	if chosen, ok := x.(*jinja.Dict); ok {
		return chosen.Get(name)
	}
	return nil, false
}

// selected answers the names the author gave to parts of the result.
func (v *Value) selected(name string) (any, bool) {
	for _, sel := range v.info.Select {
		if sel.As == name {
			return follow(v.Unwrap(), sel.Path)
		}
	}
	return nil, false
}

// lazy is a part of a summarised value: it answers from the summary where that
// is complete.
type lazy struct {
	v    *Value
	part any
	path []string
}

// Attr implements jinja.Object.
func (l lazy) Attr(name string) (any, bool) {
	d, ok := l.part.(*jinja.Dict)
	if !ok || d.Len() == 0 {
		return l.fromWhole(name)
	}
	x, ok := d.Get(name)
	switch {
	case !ok && cut(d):
		return l.fromWhole(name)
	case !ok:
		return nil, false
	}
	return l.below(name, x), true
}

// Item implements jinja.Indexer: a summary has the first item of a list.
func (l lazy) Item(i int) (any, bool) {
	list, ok := l.part.([]any)
	if !ok || i != 0 || len(list) == 0 {
		return nil, false
	}
	return l.below("0", list[0]), true
}

// below is a part of the part: what is no list or map is complete.
func (l lazy) below(name string, x any) any {
	at := append(l.path[:len(l.path):len(l.path)], name)
	switch inner := x.(type) {
	case []any:
		if len(inner) > 0 {
			return lazy{l.v, x, at}
		}
	case *jinja.Dict:
		return lazy{l.v, x, at}
	}
	return x
}

// Item implements jinja.Indexer for a result that is a list.
func (v *Value) Item(i int) (any, bool) {
	if v.info.Ref == nil || v.fetch == nil {
		return nil, false
	}
	return lazy{v, v.decoded(), nil}.Item(i)
}

// Unwrap is the whole of the part.
func (l lazy) Unwrap() any {
	x := l.v.Unwrap()
	for _, name := range l.path {
		switch inner := x.(type) {
		case *jinja.Dict:
			x, _ = inner.Get(name)
		case []any: // only the first item is ever passed through
			if len(inner) == 0 {
				return nil
			}
			x = inner[0]
		default:
			return nil
		}
	}
	return x
}

func (l lazy) fromWhole(name string) (any, bool) {
	d, ok := l.Unwrap().(*jinja.Dict)
	if !ok {
		return nil, false
	}
	return d.Get(name)
}

// cut tells that keys of the map were left out of the summary.
func cut(d *jinja.Dict) bool {
	for _, mark := range []string{markTruncated, markCount, markKeys, markLength} {
		if _, ok := d.Get(mark); ok {
			return true
		}
	}
	return false
}
