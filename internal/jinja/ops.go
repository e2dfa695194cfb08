package jinja

import (
	"math"
	"math/bits"
	"strings"
)

// numeric is an integer or a float; booleans count as 0 and 1, as in Python.
type numeric struct {
	i       int64
	f       float64
	isFloat bool
}

func asNumeric(v any) (numeric, bool) {
	switch v := v.(type) {
	case int64:
		return numeric{i: v}, true
	case float64:
		return numeric{f: v, isFloat: true}, true
	case bool:
		if v {
			return numeric{i: 1}, true
		}
		return numeric{}, true
	}
	return numeric{}, false
}

func (n numeric) float() float64 {
	if n.isFloat {
		return n.f
	}
	return float64(n.i)
}

// overflow is an error where Python would go on with a larger integer: a silent
// float would lose digits of ids.
func overflow() *Error {
	return valueError("integer overflow: the result does not fit 64 bits").
		withRemedy("compute with floats, as in x | float")
}

// binary applies an arithmetic operator.
func binary(b *budget, op string, x, y any) (any, error) {
	x, y, err := operands(x, y)
	if err != nil {
		return nil, err
	}
	nx, okx := asNumeric(x)
	ny, oky := asNumeric(y)
	if okx && oky {
		return arithmetic(op, nx, ny)
	}
	switch op {
	case "+":
		if v, ok, err := concat(b, x, y); ok || err != nil {
			return v, err
		}
	case "*":
		if n, ok := asIndex(y); ok {
			return repeat(b, x, n)
		}
		if n, ok := asIndex(x); ok {
			return repeat(b, y, n)
		}
	case "%":
		if s, ok := x.(string); ok {
			return percentOperator(b, s, y)
		}
	}
	return nil, operandError(op, x, y)
}

// operands reduces both sides of an operator and refuses undefined ones.
func operands(x, y any) (any, any, error) {
	x, err := base(x)
	if err != nil {
		return nil, nil, err
	}
	if y, err = base(y); err != nil {
		return nil, nil, err
	}
	for _, v := range [...]any{x, y} {
		if u, ok := v.(Undefined); ok {
			return nil, nil, undefinedError(u)
		}
	}
	return x, y, nil
}

// operandError says which types an operator was given.
func operandError(op string, x, y any) *Error {
	e := typeError("'%s' does not work between %s and %s", op, typeName(x), typeName(y))
	_, xs := x.(string)
	_, ys := y.(string)
	if xs != ys {
		e.Remedy = "convert one side with | int, | float or | string"
		if op == "+" {
			e.Remedy = "join texts with ~, or convert with | int"
		}
	}
	return e
}

// arithmetic computes with integers as long as both sides are, except that / is
// always a float.
func arithmetic(op string, x, y numeric) (any, error) {
	if op == "/" {
		if y.float() == 0 {
			return nil, valueError("division by zero")
		}
		return x.float() / y.float(), nil
	}
	if x.isFloat || y.isFloat {
		return floatArithmetic(op, x.float(), y.float())
	}
	return intArithmetic(op, x.i, y.i)
}

// floatArithmetic is on floats. The remainder has the sign of the divisor.
func floatArithmetic(op string, x, y float64) (any, error) {
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "**":
		return floatPow(x, y)
	}
	if y == 0 {
		return nil, valueError("division by zero")
	}
	quo, mod := floatDivMod(x, y)
	if op == "%" {
		return mod, nil
	}
	return quo, nil
}

// floatDivMod divides and rounds down. Zeros have signs, as in Python: that of
// the divisor for a remainder, that of the exact quotient for a quotient.
func floatDivMod(x, y float64) (quo, mod float64) {
	mod = math.Mod(x, y)
	exact := (x - mod) / y // whole but for rounding
	switch {
	case mod == 0:
		mod = math.Copysign(0, y)
	case (mod < 0) != (y < 0):
		mod += y
		exact--
	}
	if exact == 0 {
		return math.Copysign(0, x/y), mod
	}
	quo = math.Floor(exact)
	if exact-quo > 0.5 {
		quo++
	}
	return quo, mod
}

// floatPow refuses what Python refuses: results that are complex or infinite.
func floatPow(x, y float64) (any, error) {
	r := math.Pow(x, y)
	switch {
	case x == 0 && y < 0:
		return nil, valueError("division by zero")
	case math.IsNaN(r) && !math.IsNaN(x) && !math.IsNaN(y):
		return nil, valueError("a fractional power of a negative number is not a real number")
	case math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0):
		return nil, valueError("float overflow: the result is too large")
	}
	return r, nil
}

// intArithmetic is on integers; quotients round down, as in Python.
func intArithmetic(op string, x, y int64) (any, error) {
	switch op {
	case "+":
		if r := x + y; (r > x) == (y > 0) {
			return r, nil
		}
		return nil, overflow()
	case "-":
		if r := x - y; (r < x) == (y > 0) {
			return r, nil
		}
		return nil, overflow()
	case "*":
		r, ok := mulInt(x, y)
		if !ok {
			return nil, overflow()
		}
		return r, nil
	case "**":
		return intPow(x, y)
	}
	if y == 0 {
		return nil, valueError("division by zero")
	}
	if y == -1 { // the one quotient that can overflow, and Go's % would be fine
		if op == "%" {
			return int64(0), nil
		}
		return negate(x)
	}
	quo, rem := x/y, x%y
	if rem != 0 && (rem < 0) != (y < 0) {
		quo, rem = quo-1, rem+y
	}
	if op == "%" {
		return rem, nil
	}
	return quo, nil
}

// mulInt multiplies and reports whether the product fits.
func mulInt(x, y int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	negative := (x < 0) != (y < 0)
	switch {
	case hi != 0:
		return 0, false
	case negative && lo <= 1<<63:
		return -int64(lo), true // also right for the smallest integer
	case !negative && lo <= math.MaxInt64:
		return int64(lo), true
	}
	return 0, false
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// intPow multiplies by squaring, so that overflow is found in a few steps.
func intPow(x, y int64) (any, error) {
	if y < 0 {
		return floatPow(float64(x), float64(y))
	}
	result := int64(1)
	for ok := true; y > 0; y >>= 1 {
		if y&1 == 1 {
			if result, ok = mulInt(result, x); !ok {
				return nil, overflow()
			}
		}
		if y > 1 {
			if x, ok = mulInt(x, x); !ok {
				return nil, overflow()
			}
		}
	}
	return result, nil
}

func negate(v any) (any, error) { return signed("-", v) }

// signed applies the operator + or - to one operand. A boolean becomes a number.
func signed(op string, v any) (any, error) {
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	if u, ok := n.(Undefined); ok {
		return nil, undefinedError(u)
	}
	num, ok := asNumeric(n)
	switch {
	case !ok:
		return nil, typeError("'%s' does not work on %s", op, typeName(n))
	case op == "+" && num.isFloat:
		return num.f, nil
	case op == "+":
		return num.i, nil
	case num.isFloat:
		return -num.f, nil
	case num.i == math.MinInt64:
		return nil, overflow()
	}
	return -num.i, nil
}

// concat joins two strings or two lists; ok is false for anything else.
func concat(b *budget, x, y any) (v any, ok bool, err error) {
	if s, isText := x.(string); isText {
		t, isText := y.(string)
		if !isText {
			return nil, false, nil
		}
		if err := b.grow(len(s) + len(t)); err != nil {
			return nil, true, err
		}
		return s + t, true, nil
	}
	l, okx := sequence(x)
	r, oky := sequence(y)
	if !okx || !oky {
		return nil, false, nil
	}
	if err := b.list(len(l) + len(r)); err != nil {
		return nil, true, err
	}
	joined := append(append(make([]any, 0, len(l)+len(r)), l...), r...)
	if _, isTuple := x.(tuple); isTuple {
		return tuple(joined), true, nil
	}
	return joined, true, nil
}

// repeat is text * n and list * n, charged before anything is built.
func repeat(b *budget, v any, n int64) (any, error) {
	n = max(n, 0)
	if s, ok := v.(string); ok {
		total, fits := mulInt(int64(len(s)), n)
		if !fits {
			return nil, b.grow(-1)
		}
		if err := b.grow(int(total)); err != nil {
			return nil, err
		}
		if total == 0 {
			return "", nil
		}
		return strings.Repeat(s, int(n)), nil
	}
	list, ok := sequence(v)
	if !ok {
		return nil, operandError("*", v, n)
	}
	total, fits := mulInt(int64(len(list)), n)
	if !fits {
		return nil, b.grow(-1)
	}
	if err := b.list(int(total)); err != nil {
		return nil, err
	}
	out := make([]any, 0, total)
	for range total / max(int64(len(list)), 1) {
		out = append(out, list...)
	}
	if _, isTuple := v.(tuple); isTuple {
		return tuple(out), nil
	}
	return out, nil
}
