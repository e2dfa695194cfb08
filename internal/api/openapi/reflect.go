package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Direction is which way a value travels.
type Direction bool

// Values that are received may leave out what they like unless it is required,
// say null for it, and hold more than is described. Values that are sent have
// every member that is not marked to be left out.
const (
	Received Direction = false
	Sent     Direction = true
)

// Words says about members what Go types do not: what they mean and which values
// they have. Keys are "Component.member", or "member" for all of that name.
type Words struct {
	Meanings map[string]string
	Values   map[string][]string
}

// Components derives schemas from Go types, in the way encoding/json writes and
// reads them, and collects those of named types.
type Components struct {
	// Special are schemas of types that write or read themselves; those of
	// Received count first for values that are received.
	Special, Received map[reflect.Type]*Schema
	// Members are schemas of members that are sent, by their name, where the type
	// does not tell.
	Members map[string]*Schema
	// Names are components whose Go name would be taken or say too little.
	Names map[reflect.Type]string
	Words Words

	known    map[typeUse]string
	taken    map[string]typeUse
	schemas  map[string]*Schema
	required map[reflect.Type][]string
	errs     []error
}

type typeUse struct {
	t  reflect.Type
	to Direction
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	bytesType  = reflect.TypeFor[[]byte]()
	writesSelf = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
	readsSelf  = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
)

// Require says which members of a received type must be there.
func (c *Components) Require(t reflect.Type, members []string) {
	if c.required == nil {
		c.required = map[reflect.Type][]string{}
	}
	if before, ok := c.required[t]; ok && !slices.Equal(before, members) {
		c.errs = append(c.errs, fmt.Errorf("%v: two routes require different members of it: %v and %v", t, before, members))
	}
	c.required[t] = members
}

// Add puts a schema that was written by hand among the components.
func (c *Components) Add(name string, s *Schema) *Schema {
	c.prepare()
	c.schemas[name] = s
	return &Schema{Ref: "#/components/schemas/" + name}
}

func (c *Components) prepare() {
	if c.schemas == nil {
		c.schemas, c.known, c.taken = map[string]*Schema{}, map[typeUse]string{}, map[string]typeUse{}
	}
}

// Schema describes values of a type.
func (c *Components) Schema(t reflect.Type, to Direction) *Schema {
	c.prepare()
	if s, ok := c.Received[t]; ok && to == Received {
		return s
	}
	if s, ok := c.Special[t]; ok {
		return s
	}
	switch t {
	case timeType:
		return Text("date-time")
	case rawType:
		return &Schema{}
	case bytesType:
		return &Schema{Type: Types{"string"}, Encoding: "base64"}
	}
	if t.Kind() == reflect.Pointer {
		return Nullable(c.Schema(t.Elem(), to))
	}
	if c.translates(t, to) {
		c.errs = append(c.errs, fmt.Errorf("%v writes or reads itself: declare a schema for it", t))
		return &Schema{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Of("boolean")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return Of("integer")
	case reflect.Int64, reflect.Uint64, reflect.Uint:
		return &Schema{Type: Types{"integer"}, Format: "int64"}
	case reflect.Float32, reflect.Float64:
		return Of("number")
	case reflect.String:
		return Of("string")
	case reflect.Slice, reflect.Array:
		return List(c.Schema(t.Elem(), to))
	case reflect.Map:
		return &Schema{Type: Types{"object"}, Additional: c.Schema(t.Elem(), to)}
	case reflect.Struct:
		return c.object(t, to)
	case reflect.Interface:
		return &Schema{}
	}
	c.errs = append(c.errs, fmt.Errorf("%v has no form in JSON", t))
	return &Schema{}
}

// translates tells whether a type has its own form in JSON.
func (c *Components) translates(t reflect.Type, to Direction) bool {
	ways := readsSelf
	if to == Sent {
		ways = writesSelf
	}
	return slices.ContainsFunc(ways, func(w reflect.Type) bool {
		return t.Kind() != reflect.Interface && (t.Implements(w) || reflect.PointerTo(t).Implements(w))
	})
}

func (c *Components) object(t reflect.Type, to Direction) *Schema {
	if t.Name() == "" {
		return c.members(t, "", to)
	}
	use := typeUse{t, to}
	name, ok := c.known[use]
	if !ok {
		name = c.name(use)
		c.known[use], c.taken[name] = name, use
		c.schemas[name] = &Schema{} // a type may refer to itself
		*c.schemas[name] = *c.members(t, name, to)
	}
	return &Schema{Ref: "#/components/schemas/" + name}
}

// name finds a name that is not taken.
func (c *Components) name(use typeUse) string {
	name := c.Names[use.t]
	if name == "" {
		letters := []rune(use.t.Name())
		letters[0] = unicode.ToUpper(letters[0])
		name = string(letters)
	}
	if other, taken := c.taken[name]; taken && other.t == use.t && use.to == Received {
		name += "Input"
	} else if taken && other.t == use.t {
		name += "Output"
	}
	if other, taken := c.taken[name]; taken {
		c.errs = append(c.errs, fmt.Errorf("%v and %v would both be called %s: name one of them", use.t, other.t, name))
	}
	return name
}

func (c *Components) members(t reflect.Type, component string, to Direction) *Schema {
	s := &Schema{Type: Types{"object"}}
	c.fields(s, t, component, to, true)
	for _, name := range c.required[t] {
		i := slices.IndexFunc(s.Properties, func(p Property) bool { return p.Name == name })
		if i < 0 {
			c.errs = append(c.errs, fmt.Errorf("%v has no member %s that could be required", t, name))
			continue
		}
		if to == Received {
			s.Required = append(s.Required, name)
		}
	}
	if to == Received {
		for i, p := range s.Properties {
			if !slices.Contains(s.Required, p.Name) {
				s.Properties[i].Schema = Nullable(p.Schema)
			}
		}
	}
	return s
}

// fields adds the members of a struct, those of embedded ones as its own.
func (c *Components) fields(s *Schema, t reflect.Type, component string, to Direction, always bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && !tagged && inner.Kind() == reflect.Struct {
			c.fields(s, inner, component, to, always && f.Type.Kind() != reflect.Pointer)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if slices.ContainsFunc(s.Properties, func(p Property) bool { return p.Name == name }) {
			continue // what embeds counts more; it is declared before
		}
		left := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		of := c.Schema(f.Type, to)
		if left && to == Sent && f.Type.Kind() == reflect.Pointer {
			of = c.Schema(f.Type.Elem(), to) // null is left out
		}
		if own, ok := c.Members[name]; ok && to == Sent {
			if of = own; f.Type.Kind() == reflect.Pointer && !left {
				of = Nullable(own)
			}
		}
		s.Properties = append(s.Properties, Property{name, c.worded(of, component, name)})
		if to == Sent && !left && always {
			s.Required = append(s.Required, name)
		}
	}
}

// worded adds what is known of a member beside its type.
func (c *Components) worded(s *Schema, component, name string) *Schema {
	meaning := c.Words.Meanings[component+"."+name]
	if meaning == "" {
		meaning = c.Words.Meanings[name]
	}
	values := c.Words.Values[component+"."+name]
	if meaning == "" && values == nil {
		return s
	}
	with := *s
	if meaning != "" {
		with.Description = meaning
	}
	for _, v := range values {
		with.Enum = append(with.Enum, v)
	}
	if len(with.Type) > 1 && len(with.Enum) > 0 {
		with.Enum = append(with.Enum, nil)
	}
	return &with
}

// All are the components so far, by name, and what went wrong with them.
func (c *Components) All() (map[string]*Schema, []error) {
	return maps.Clone(c.schemas), slices.Clone(c.errs)
}

// Unspoken lists the words that no component uses, so that none outlives its
// member.
func (c *Components) Unspoken() []string {
	said := map[string]bool{}
	var walk func(component string, s *Schema)
	walk = func(component string, s *Schema) {
		if s == nil {
			return
		}
		for _, p := range s.Properties {
			said[component+"."+p.Name], said[p.Name] = true, true
			walk("", p.Schema)
		}
		walk("", s.Items)
		walk("", s.Additional)
	}
	for name, s := range c.schemas {
		walk(name, s)
	}
	var idle []string
	for key := range c.Words.Meanings {
		if !said[key] {
			idle = append(idle, key)
		}
	}
	for key := range c.Words.Values {
		if !said[key] {
			idle = append(idle, key)
		}
	}
	slices.Sort(idle)
	return slices.Compact(idle)
}
