package jinja

import (
	"slices"
	"strings"
)

// listFilters work on the elements of a value.
func listFilters() map[string]*operation {
	return map[string]*operation{
		"list":    op(onElements(func(_ env, items []any, _ args) (any, error) { return items, nil })),
		"first":   op(onElements(firstFilter)),
		"last":    op(onElements(lastFilter)),
		"join":    op(onElements(joinFilter), "d?", "attribute?"),
		"reverse": op(reverseFilter),
		"batch":   op(onElements(batchFilter), "linecount", "fill_with?"),
		"slice":   op(onElements(sliceFilter), "slices", "fill_with?"),
		"sum":     op(onElements(sumFilter), "attribute?", "start?"),
		"unique":  op(onElements(uniqueFilter), "case_sensitive?", "attribute?"),
	}
}

// onElements makes a filter of a function on the elements of a value.
func onElements(f func(e env, items []any, a args) (any, error)) method {
	return func(e env, self any, a args) (any, error) {
		items, err := elements(e.budget(), self)
		if err != nil {
			return nil, err
		}
		if items == nil {
			items = []any{}
		}
		return f(e, items, a)
	}
}

func firstFilter(_ env, items []any, _ args) (any, error) {
	if len(items) == 0 {
		return Undefined{Name: "the first element of nothing"}, nil
	}
	return items[0], nil
}

func lastFilter(_ env, items []any, _ args) (any, error) {
	if len(items) == 0 {
		return Undefined{Name: "the last element of nothing"}, nil
	}
	return items[len(items)-1], nil
}

func joinFilter(e env, items []any, a args) (any, error) {
	sep, err := text(e.budget(), a.or(0, ""))
	if err != nil {
		return nil, err
	}
	items, err = attributes(e, items, a.or(1, nil), nil)
	if err != nil {
		return nil, err
	}
	return joinText(e.budget(), items, sep)
}

// getter reads an attribute path such as "user.name" or "rows.0" of a value.
func getter(b *budget, attr, fallback any) (func(v any) (any, error), error) {
	n, err := base(attr)
	if err != nil {
		return nil, err
	}
	name, err := keyText(n)
	if err != nil {
		return nil, err
	}
	if fallback == unset {
		fallback = Undefined{Name: name}
	}
	if i, ok := n.(int64); ok {
		return func(v any) (any, error) { return subscript(b, v, i, fallback) }, nil
	}
	parts := strings.Split(name, ".")
	return func(v any) (any, error) {
		for _, part := range parts {
			var err error
			if v, err = attribute(b, v, part, unset); err != nil {
				return nil, err
			}
			if v == unset || IsUndefined(v) {
				return fallback, nil
			}
		}
		return v, nil
	}, nil
}

// attributes are the elements themselves, or an attribute of each.
func attributes(e env, items []any, attr, fallback any) ([]any, error) {
	if attr == nil {
		return items, nil
	}
	if fallback == nil {
		fallback = unset
	}
	get, err := getter(e.budget(), attr, fallback)
	if err != nil {
		return nil, err
	}
	if err := e.budget().list(len(items)); err != nil {
		return nil, err
	}
	out := make([]any, len(items))
	for i, item := range items {
		if out[i], err = get(item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func reverseFilter(e env, self any, _ args) (any, error) {
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	if s, ok := n.(string); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes), e.budget().grow(len(s))
	}
	items, err := elements(e.budget(), n)
	if err != nil {
		return nil, err
	}
	if err := e.budget().list(len(items)); err != nil {
		return nil, err
	}
	out := append([]any{}, items...)
	slices.Reverse(out)
	return out, nil
}

// batchFilter cuts a list into rows of a size.
func batchFilter(e env, items []any, a args) (any, error) {
	size, err := a.int(0, 0)
	if err != nil {
		return nil, err
	}
	if size < 1 {
		return nil, valueError("the size of a batch is at least 1")
	}
	size = min(size, int64(e.budget().limits.Bytes))
	out := []any{}
	for rest := items; len(rest) > 0; {
		n := min(int(size), len(rest))
		row := append([]any{}, rest[:n]...)
		rest = rest[n:]
		if fill := a.or(1, nil); fill != nil && n < int(size) {
			if err := e.budget().list(int(size)); err != nil {
				return nil, err
			}
			for len(row) < int(size) {
				row = append(row, fill)
			}
		}
		out = append(out, row)
	}
	return out, e.budget().list(len(items) + len(out))
}

// sliceFilter spreads a list over a number of columns of nearly equal length.
func sliceFilter(e env, items []any, a args) (any, error) {
	columns, err := a.int(0, 0)
	if err != nil {
		return nil, err
	}
	if columns < 1 {
		return nil, valueError("the number of slices is at least 1")
	}
	columns = min(columns, int64(e.budget().limits.Bytes))
	if err := e.budget().list(int(columns) + len(items)); err != nil {
		return nil, err
	}
	size, extra := len(items)/int(columns), len(items)%int(columns)
	out := make([]any, columns)
	for i := range out {
		n := size
		if i < extra {
			n++
		}
		column := append([]any{}, items[:n]...)
		items = items[n:]
		if fill := a.or(1, nil); fill != nil && i >= extra {
			column = append(column, fill)
		}
		out[i] = column
	}
	return out, nil
}

// sumFilter adds with +, so that it joins lists too: sum(start=[]).
func sumFilter(e env, items []any, a args) (any, error) {
	items, err := attributes(e, items, a.or(0, nil), nil)
	if err != nil {
		return nil, err
	}
	total := a.or(1, int64(0))
	for _, item := range items {
		if total, err = binary(e.budget(), "+", total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// uniqueFilter keeps the first of equal elements. It hashes instead of
// comparing pairs, to stay linear on long lists.
func uniqueFilter(e env, items []any, a args) (any, error) {
	keys, err := attributes(e, items, a.or(1, nil), nil)
	if err != nil {
		return nil, err
	}
	if keys, err = foldedAll(e.budget(), keys, a.flag(0, false)); err != nil {
		return nil, err
	}
	seen := make(map[any]bool, len(items))
	out := []any{}
	for i, item := range items {
		key, err := identity(e, keys[i])
		if err != nil {
			return nil, err
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, item)
		}
	}
	return out, e.budget().list(len(items))
}

// folded is a value as it is compared when case does not matter. A list can hold
// the same long text many times, so every copy is charged.
func folded(b *budget, v any, caseSensitive bool) (any, error) {
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	s, ok := n.(string)
	if !ok || caseSensitive {
		return v, nil
	}
	return strings.ToLower(s), b.grow(len(s))
}

// foldedAll is folded for each of the keys by which elements are compared.
func foldedAll(b *budget, keys []any, caseSensitive bool) ([]any, error) {
	out := make([]any, len(keys))
	for i, k := range keys {
		var err error
		if out[i], err = folded(b, k, caseSensitive); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// structure is the identity of a list or mapping: its JSON.
type structure string

// identity maps values to comparable keys so that equal values have equal keys.
func identity(e env, v any) (any, error) {
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	if num, ok := asNumeric(n); ok {
		if i, fits := truncated(num.float(), nil).(int64); num.isFloat && fits && float64(i) == num.f {
			return i, nil
		}
		if num.isFloat {
			return num.f, nil
		}
		return num.i, nil
	}
	switch n.(type) {
	case nil, string, Undefined:
		return n, nil
	}
	w := jsonWriter{sorted: true, budget: e.budget()}
	text, err := w.value(nil, n, 0)
	if err != nil {
		return nil, err
	}
	return structure(text), e.budget().grow(len(text))
}
