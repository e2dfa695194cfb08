package jinja

import "encoding/json"

// Limits bound one evaluation. A zero field stands for that of DefaultLimits.
type Limits struct {
	Steps int // loop iterations, calls and list elements visited
	Bytes int // length of the output and size of any single value that is built
	Depth int // nested macro calls
}

// DefaultLimits apply to every template that was not given its own.
var DefaultLimits = Limits{Steps: 1_000_000, Bytes: 16 << 20, Depth: 100}

func (l Limits) withDefaults() Limits {
	if l.Steps <= 0 {
		l.Steps = DefaultLimits.Steps
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultLimits.Bytes
	}
	if l.Depth <= 0 {
		l.Depth = DefaultLimits.Depth
	}
	return l
}

const (
	// maxSource is the longest source that is compiled.
	maxSource = 4 << 20
	// maxTokens is how many words and signs a source may have inside its tags.
	// A compiled template is many times larger than its source.
	maxTokens = 200_000
	// maxName is the longest name of a variable or attribute, in bytes.
	maxName = 255
	// maxArguments is how many arguments a call, or parameters a macro, may have.
	maxArguments = 1000
	// maxSyntaxDepth is the deepest syntax tree that is compiled. Compilation
	// and evaluation recurse over the tree, so it bounds the stack of both.
	maxSyntaxDepth = 400
	// maxNesting is the deepest value that is read, printed or compared.
	maxNesting = 1000
	// growthFactor is how many times Limits.Bytes one evaluation may allocate
	// in intermediate values, most of which are garbage by its end.
	growthFactor = 4
	// elementSize is what an element of a list counts for against Limits.Bytes.
	elementSize = 16
)

// budget is what is left of the limits during one evaluation. A nil budget
// charges nothing; it is used for expressions without loops, calls or growth,
// whose work is bounded by their source.
type budget struct {
	limits Limits
	steps  int
	grown  int
	depth  int
}

func newBudget(l Limits) budget {
	return budget{limits: l, steps: l.Steps}
}

// step charges n units of work.
func (b *budget) step(n int) error {
	if b == nil {
		return nil
	}
	b.steps -= n
	if b.steps < 0 {
		return limitError("the template takes more than %d steps", b.limits.Steps)
	}
	return nil
}

// grow charges a value of n bytes that is about to be built.
func (b *budget) grow(n int) error {
	if b == nil {
		return nil
	}
	if n < 0 || n > b.limits.Bytes {
		return limitError("the template builds a value of more than %d bytes", b.limits.Bytes)
	}
	b.grown += n
	if b.grown/growthFactor > b.limits.Bytes {
		return limitError("the template builds more than %d bytes of values", growthFactor*b.limits.Bytes)
	}
	return nil
}

// list charges a list of n elements that is about to be built.
func (b *budget) list(n int) error {
	if err := b.step(n); err != nil {
		return err
	}
	if b != nil && n > b.limits.Bytes/elementSize {
		return b.grow(-1)
	}
	return b.grow(n * elementSize)
}

// scan charges the reading of n bytes of text.
func (b *budget) scan(n int) error {
	return b.step(n / 512)
}

// read is norm for a value that a template reaches. Lazy JSON is decoded every
// time it is reached, so that is charged.
func (b *budget) read(v any) (any, error) {
	if raw, ok := v.(json.RawMessage); ok {
		if err := b.step(len(raw) / 256); err != nil {
			return nil, err
		}
	}
	return norm(v)
}

// enter charges one level of recursion; leave gives it back.
func (b *budget) enter() error {
	b.depth++
	if b.depth > b.limits.Depth {
		return limitError("macros call each other more than %d levels deep", b.limits.Depth)
	}
	return nil
}

func (b *budget) leave() { b.depth-- }

func limitError(format string, args ...any) *Error {
	return newError(kindLimit, format, args...).
		withRemedy("do the heavy work in a tool; templates are for small values")
}

// nestingError is the error of a value deeper than maxNesting.
func nestingError() *Error {
	return limitError("the value is nested more than %d levels deep", maxNesting)
}
