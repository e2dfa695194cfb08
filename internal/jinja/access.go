package jinja

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// attribute is x.name: for a mapping its key, for an Object its answer, for
// undefined the same undefined. missing is returned when there is no such thing.
func attribute(b *budget, v any, name string, missing any) (any, error) {
	for range maxWraps {
		switch x := v.(type) {
		case map[string]any:
			if e, ok := x[name]; ok {
				return b.read(e)
			}
			return missing, nil
		case *Dict:
			if e, ok := x.Get(name); ok {
				return b.read(e)
			}
			return missing, nil
		case Undefined:
			return v, nil // not x, which would be boxed anew
		case nil, bool, int64, float64, string, Word, jsonText:
			return missing, nil
		case []any:
			return element(b, x, name, missing)
		case tuple:
			return element(b, x, name, missing)
		case Object:
			if e, ok := x.Attr(name); ok {
				return b.read(e)
			}
			w, ok := x.(Wrapper)
			if !ok {
				return missing, nil
			}
			v = w.Unwrap()
		default:
			n, err := b.read(v)
			if err != nil {
				return nil, err
			}
			if _, opaque := n.(callable); opaque {
				return missing, nil
			}
			v = n
		}
	}
	return nil, limitError("a value is wrapped in itself")
}

// element is the attribute of a list: x.0 is its first element.
func element(b *budget, list []any, name string, missing any) (any, error) {
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(list) {
		return missing, nil
	}
	return b.read(list[i])
}

// subscript is x[key].
func subscript(b *budget, v, key, missing any) (any, error) {
	k, err := base(key)
	if err != nil {
		return nil, err
	}
	if name, ok := k.(string); ok {
		if err := b.scan(len(name)); err != nil {
			return nil, err
		}
		return attribute(b, v, name, missing)
	}
	if x, ok := v.(Indexer); ok {
		if i, isInt := asIndex(k); isInt {
			if item, known := x.Item(int(i)); known {
				return norm(item)
			}
		}
	}
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case Undefined:
		return n, nil
	case *Dict, map[string]any:
		name, err := keyText(k)
		if err != nil {
			return nil, err
		}
		return attribute(b, v, name, missing)
	case string:
		if i, ok := asIndex(k); ok {
			return characterAt(n, i, missing), b.scan(len(n))
		}
	}
	list, isList := sequence(n)
	i, isInt := asIndex(k)
	if !isList || !isInt {
		return missing, nil
	}
	if i < 0 {
		i += int64(len(list))
	}
	if i < 0 || i >= int64(len(list)) {
		return missing, nil
	}
	return b.read(list[i])
}

// asIndex returns a value that can count elements: an integer, or a boolean as
// in Python, but never a float, even a whole one.
func asIndex(v any) (int64, bool) {
	n, ok := asNumeric(v)
	return n.i, ok && !n.isFloat
}

// characterAt is the i-th character of a string, from the end if i is negative.
// Characters are code points, so the string is walked.
func characterAt(s string, i int64, missing any) any {
	if i < 0 {
		i += int64(runeCount(s))
	}
	if i < 0 || i >= int64(len(s)) {
		return missing
	}
	for pos := range s {
		if i == 0 {
			_, size := utf8.DecodeRuneInString(s[pos:])
			return s[pos : pos+size]
		}
		i--
	}
	return missing
}

// keyText is the text under which a value is a key of a mapping.
func keyText(v any) (string, error) {
	n, err := base(v)
	if err != nil {
		return "", err
	}
	switch n := n.(type) {
	case string:
		return n, nil
	case nil, bool, int64, float64:
		return text(nil, n)
	case Undefined:
		return "", undefinedError(n)
	}
	return "", typeError("a value of type %s cannot be a key", typeName(n))
}

// sliceBounds are the three optional parts of x[start:stop:step]; nil is absent.
type sliceBounds struct{ start, stop, step any }

// slice is x[start:stop:step] with Python's rules for signs and overshoot.
func slice(b *budget, v any, s sliceBounds) (any, error) {
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	for _, part := range [...]*any{&s.start, &s.stop, &s.step} {
		if *part, err = base(*part); err != nil {
			return nil, err
		}
	}
	switch n := n.(type) {
	case Undefined:
		return n, nil
	case string:
		runes := []rune(n)
		if err := b.grow(len(n)); err != nil {
			return nil, err
		}
		picked, err := pick(b, runes, s)
		return string(picked), err
	case tuple:
		picked, err := pick(b, n, s)
		return picked, err
	case []any:
		picked, err := pick(b, n, s)
		return picked, err
	}
	return nil, typeError("a value of type %s cannot be sliced", typeName(n))
}

// pick copies the elements that a slice selects. It always copies: sharing the
// backing array would keep a large list alive for a small part of it.
func pick[S ~[]E, E any](b *budget, list S, s sliceBounds) (S, error) {
	step, err := boundOr(s.step, 1)
	if err != nil {
		return nil, err
	}
	if step == 0 {
		return nil, valueError("the step of a slice cannot be zero")
	}
	size := int64(len(list))
	first, last := int64(0), size
	if step < 0 {
		first, last = size-1, -1
	}
	start, err := clampBound(s.start, first, size, step)
	if err != nil {
		return nil, err
	}
	stop, err := clampBound(s.stop, last, size, step)
	if err != nil {
		return nil, err
	}
	count := int64(0)
	switch {
	case step > 0 && stop > start:
		count = (stop-start-1)/step + 1
	case step < 0 && start > stop:
		count = (start-stop-1)/-max(step, -math.MaxInt64) + 1
	}
	if err := b.list(int(count)); err != nil {
		return nil, err
	}
	out := make(S, count)
	for i := range out {
		out[i] = list[start+int64(i)*step]
	}
	return out, nil
}

// boundOr returns a bound as an integer, or the fallback if it is absent.
func boundOr(v any, fallback int64) (int64, error) {
	switch v := v.(type) {
	case nil:
		return fallback, nil
	case Undefined:
		return 0, undefinedError(v)
	}
	i, ok := asIndex(v)
	if !ok {
		return 0, typeError("the bounds of a slice are integers, not %s", typeName(v))
	}
	return i, nil
}

// clampBound counts a negative bound from the end and moves it into the list;
// an absent one is where a walk in the direction of step begins or ends.
func clampBound(v any, absent, size, step int64) (int64, error) {
	i, err := boundOr(v, absent)
	if err != nil || v == nil {
		return absent, err
	}
	if i < 0 {
		i += size
	}
	low, high := int64(0), size
	if step < 0 {
		low, high = -1, size-1
	}
	return min(max(i, low), high), nil
}
