package jinja

import (
	"math/bits"
	"slices"
)

// selectFilters order, pick and transform elements.
func selectFilters() map[string]*operation {
	return map[string]*operation{
		"map":        op(onAny(mapFilter), "*", "**"),
		"select":     op(onAny(selectBy(true)), "*", "**"),
		"reject":     op(onAny(selectBy(false)), "*", "**"),
		"selectattr": op(onAny(selectByAttr(true)), "attribute", "*", "**"),
		"rejectattr": op(onAny(selectByAttr(false)), "attribute", "*", "**"),
		"sort":       op(onElements(sortFilter), "reverse?", "case_sensitive?", "attribute?"),
		"dictsort":   op(dictsortFilter, "case_sensitive?", "by?", "reverse?"),
		"groupby":    op(onElements(groupbyFilter), "attribute", "default?", "case_sensitive?"),
		"max":        op(onElements(extremeFilter(1)), "case_sensitive?", "attribute?"),
		"min":        op(onElements(extremeFilter(-1)), "case_sensitive?", "attribute?"),
	}
}

// onAny is onElements, except that none, false, zero and empty texts have no
// elements: what selects and maps is lenient, as in Jinja2.
func onAny(f func(e env, items []any, a args) (any, error)) method {
	strict := onElements(f)
	return func(e env, self any, a args) (any, error) {
		if !Truthy(self) {
			self = []any{}
		}
		return strict(e, self, a)
	}
}

// mapFilter is map(attribute='x'), or map('filter', arguments…).
func mapFilter(e env, items []any, a args) (any, error) {
	if len(a.rest) == 0 {
		return mapAttribute(e, items, a.kw)
	}
	name, err := asText(a.rest[0])
	if err != nil {
		return nil, err
	}
	filter, ok := filters[name]
	if !ok {
		return nil, unknownName("filter", name, knownNames(filters))
	}
	if err := e.budget().list(len(items)); err != nil {
		return nil, err
	}
	out := make([]any, len(items))
	for i, item := range items {
		if out[i], err = filter.apply(e, "the filter "+name, item, a.rest[1:], a.kw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func mapAttribute(e env, items []any, kw []named[any]) (any, error) {
	var attr, fallback any
	for _, k := range kw {
		switch k.name {
		case "attribute":
			attr = k.val
		case "default":
			fallback = k.val
		default:
			return nil, typeError("the filter map has no argument '%s'", k.name)
		}
	}
	if attr == nil {
		return nil, typeError("the filter map needs the name of a filter or an attribute")
	}
	out, err := attributes(e, items, attr, fallback)
	return out, err
}

// predicate is the test that select and its kin apply: the truth of a value, or
// a named test with arguments.
func predicate(e env, pos []any, kw []named[any]) (func(v any) (bool, error), error) {
	if len(pos) == 0 {
		return func(v any) (bool, error) { return Truthy(v), nil }, nil
	}
	name, err := asText(pos[0])
	if err != nil {
		return nil, err
	}
	test, ok := tests[name]
	if !ok {
		return nil, unknownName("test", name, knownNames(tests))
	}
	return func(v any) (bool, error) {
		result, err := test.apply(e, "the test "+name, v, pos[1:], kw)
		return Truthy(result), err
	}, nil
}

// selectBy is select for true and reject for false.
func selectBy(want bool) func(env, []any, args) (any, error) {
	return func(e env, items []any, a args) (any, error) {
		holds, err := predicate(e, a.rest, a.kw)
		if err != nil {
			return nil, err
		}
		return selected(e, items, items, holds, want)
	}
}

// selectByAttr is selectattr for true and rejectattr for false.
func selectByAttr(want bool) func(env, []any, args) (any, error) {
	return func(e env, items []any, a args) (any, error) {
		keys, err := attributes(e, items, a.vals[0], nil)
		if err != nil {
			return nil, err
		}
		holds, err := predicate(e, a.rest, a.kw)
		if err != nil {
			return nil, err
		}
		return selected(e, items, keys, holds, want)
	}
}

func selected(e env, items, keys []any, holds func(any) (bool, error), want bool) (any, error) {
	out := []any{}
	for i, item := range items {
		ok, err := holds(keys[i])
		if err != nil {
			return nil, err
		}
		if ok == want {
			out = append(out, item)
		}
	}
	return out, e.budget().list(len(items))
}

// sorter sorts items by keys, keeping the order of equal ones.
type sorter struct {
	env     env
	reverse bool
	err     error
}

type keyed struct {
	key, item any
}

// sort keeps the first error of comparing, after which the order is meaningless
// and the rest of the comparisons are skipped.
func (s *sorter) sort(list []keyed) error {
	n := len(list)
	if err := s.env.budget().list(n * bits.Len(uint(n))); err != nil {
		return err
	}
	slices.SortStableFunc(list, func(x, y keyed) int {
		if s.err != nil {
			return 0
		}
		c, err := order(s.env.budget(), "<", x.key, y.key)
		switch {
		case err != nil:
			s.err = err
			return 0
		case c == unordered:
			return 0
		case s.reverse:
			return -c
		}
		return c
	})
	return s.err
}

func unkeyed(list []keyed) []any {
	out := make([]any, len(list))
	for i, k := range list {
		out[i] = k.item
	}
	return out
}

func sortFilter(e env, items []any, a args) (any, error) {
	list, err := keyedBy(e, items, a.or(2, nil), unset, a.flag(1, false))
	if err != nil {
		return nil, err
	}
	s := sorter{env: e, reverse: a.flag(0, false)}
	if err := s.sort(list); err != nil {
		return nil, err
	}
	return unkeyed(list), nil
}

// keyedBy pairs elements with what they are ordered by: themselves, or the
// attributes that are named with commas between them.
func keyedBy(e env, items []any, attr, fallback any, caseSensitive bool) ([]keyed, error) {
	list := make([]keyed, len(items))
	names, err := attributeNames(attr)
	if err != nil {
		return nil, err
	}
	columns := make([][]any, len(names))
	for i, name := range names {
		if columns[i], err = attributes(e, items, name, fallback); err != nil {
			return nil, err
		}
		if columns[i], err = foldedAll(e.budget(), columns[i], caseSensitive); err != nil {
			return nil, err
		}
	}
	for i, item := range items {
		if len(columns) == 1 {
			list[i] = keyed{columns[0][i], item}
			continue
		}
		key := make([]any, len(columns))
		for j := range columns {
			key[j] = columns[j][i]
		}
		list[i] = keyed{key, item}
	}
	return list, nil
}

// attributeNames splits "a,b" into the attributes to sort by, one after another.
func attributeNames(attr any) ([]any, error) {
	n, err := base(attr)
	if err != nil {
		return nil, err
	}
	if s, ok := n.(string); ok {
		return textList(splitText(s, ",", -1)), nil
	}
	return []any{n}, nil
}

// dictsortFilter lists the entries of a mapping as pairs in order.
func dictsortFilter(e env, self any, a args) (any, error) {
	by, err := a.text(1, "key")
	if err != nil {
		return nil, err
	}
	if by != "key" && by != "value" {
		return nil, valueError("dictsort sorts by key or by value")
	}
	pairs, err := onMapping(dictItems)(e, self, args{})
	if err != nil {
		return nil, err
	}
	items := pairs.([]any)
	list := make([]keyed, len(items))
	for i, p := range items {
		key := p.(tuple)[0]
		if by == "value" {
			key = p.(tuple)[1]
		}
		if key, err = folded(e.budget(), key, a.flag(0, false)); err != nil {
			return nil, err
		}
		list[i] = keyed{key, p}
	}
	s := sorter{env: e, reverse: a.flag(2, false)}
	if err := s.sort(list); err != nil {
		return nil, err
	}
	return unkeyed(list), nil
}

// group is one element of groupby: a pair that also answers by name.
type group struct {
	grouper any
	list    []any
}

func (g group) Attr(name string) (any, bool) {
	switch name {
	case "grouper":
		return g.grouper, true
	case "list":
		return g.list, true
	}
	return nil, false
}

func (g group) Unwrap() any { return tuple{g.grouper, g.list} }

// groupbyFilter sorts by the attribute and groups neighbours. A group is called
// what its first member says, even when case is ignored.
func groupbyFilter(e env, items []any, a args) (any, error) {
	caseSensitive := a.flag(2, false)
	list, err := keyedBy(e, items, a.vals[0], a.or(1, unset), caseSensitive)
	if err != nil {
		return nil, err
	}
	written, err := attributes(e, items, a.vals[0], a.or(1, unset))
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].item = tuple{written[i], items[i]}
	}
	s := sorter{env: e}
	if err := s.sort(list); err != nil {
		return nil, err
	}
	out := []any{}
	for i, k := range list {
		pair := k.item.(tuple)
		if i > 0 {
			same, err := equal(e.budget(), list[i-1].key, k.key)
			if err != nil {
				return nil, err
			}
			if same {
				last := out[len(out)-1].(group)
				last.list = append(last.list, pair[1])
				out[len(out)-1] = last
				continue
			}
		}
		out = append(out, group{pair[0], []any{pair[1]}})
	}
	return out, nil
}

// extremeFilter is max for a sign of 1 and min for -1.
func extremeFilter(sign int) func(env, []any, args) (any, error) {
	return func(e env, items []any, a args) (any, error) {
		if len(items) == 0 {
			return Undefined{Name: "the extreme of nothing"}, nil
		}
		keys, err := attributes(e, items, a.or(1, nil), nil)
		if err != nil {
			return nil, err
		}
		if keys, err = foldedAll(e.budget(), keys, a.flag(0, false)); err != nil {
			return nil, err
		}
		best := 0
		for i := range keys {
			c, err := order(e.budget(), "<", keys[i], keys[best])
			if err != nil {
				return nil, err
			}
			if c == sign {
				best = i
			}
		}
		return items[best], e.budget().step(len(items))
	}
}
