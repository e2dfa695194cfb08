package duckdb

import "strings"

// kind is a type of DuckDB: DATE, DECIMAL(18,3), STRUCT("a" DATE, "b" INTEGER[]).
type kind struct {
	name   string // in capitals, without what is in brackets
	fields []field
	elem   *kind // of a list or an array, and the values of a MAP
	key    *kind // of a MAP
}

type field struct {
	name string
	kind *kind
}

// parseKind reads a type as DuckDB writes it. What it does not know is a kind
// of that name.
func parseKind(text string) *kind {
	p := kindParser{rest: text}
	return p.kind()
}

// isJSON tells text that holds JSON from other text.
func (k *kind) isJSON() bool { return k != nil && k.name == "JSON" }

// field finds the kind of a field of a struct.
func (k *kind) member(i int) field {
	if k == nil || i >= len(k.fields) {
		return field{}
	}
	return k.fields[i]
}

func (k *kind) element() *kind {
	if k == nil {
		return nil
	}
	return k.elem
}

type kindParser struct{ rest string }

func (p *kindParser) kind() *kind {
	k := &kind{name: strings.ToUpper(p.word())}
	switch {
	case strings.HasPrefix(p.rest, "("):
		p.rest = p.rest[1:]
		p.inside(k)
		p.take(")")
		if tail := p.word(); tail != "" { // TIMESTAMP(3) WITH TIME ZONE
			k.name += " " + strings.ToUpper(tail)
		}
	}
	for strings.HasPrefix(p.rest, "[") {
		end := strings.IndexByte(p.rest, ']')
		if end < 0 {
			p.rest = ""
			break
		}
		p.rest = p.rest[end+1:]
		k = &kind{name: "LIST", elem: k}
	}
	return k
}

func (p *kindParser) inside(k *kind) {
	switch k.name {
	case "STRUCT", "UNION":
		for {
			p.spaces()
			name := p.name()
			p.spaces()
			k.fields = append(k.fields, field{name, p.kind()})
			p.spaces()
			if !p.take(",") {
				return
			}
		}
	case "MAP":
		k.key = p.kind()
		p.spaces()
		p.take(",")
		p.spaces()
		k.elem = p.kind()
	default: // the digits of a DECIMAL, the words of an ENUM
		depth := 0
		for i := 0; i < len(p.rest); i++ {
			switch p.rest[i] {
			case '\'':
				if end := strings.IndexByte(p.rest[i+1:], '\''); end >= 0 {
					i += end + 1
				}
			case '(':
				depth++
			case ')':
				if depth == 0 {
					p.rest = p.rest[i:]
					return
				}
				depth--
			}
		}
		p.rest = ""
	}
}

func (p *kindParser) take(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	p.rest = rest
	return ok
}

func (p *kindParser) spaces() { p.rest = strings.TrimLeft(p.rest, " ") }

// word takes all up to the next bracket or comma: TIMESTAMP WITH TIME ZONE.
func (p *kindParser) word() string {
	end := strings.IndexAny(p.rest, "()[],")
	if end < 0 {
		end = len(p.rest)
	}
	word := strings.TrimSpace(p.rest[:end])
	p.rest = p.rest[end:]
	return word
}

// name takes the name of a field, quoted or not.
func (p *kindParser) name() string {
	if !strings.HasPrefix(p.rest, `"`) {
		name, rest, _ := strings.Cut(p.rest, " ")
		p.rest = rest
		return name
	}
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		if p.rest[i] != '"' {
			b.WriteByte(p.rest[i])
			continue
		}
		if i+1 < len(p.rest) && p.rest[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		p.rest = p.rest[i+1:]
		return b.String()
	}
	p.rest = ""
	return b.String()
}
