package event

import (
	"bytes"
	"fmt"
	"strconv"
)

// ID is a 64-bit snowflake. In JSON it is written as a number and read from a
// number or a decimal string, because browsers cannot hold it as a number.
type ID int64

// ParseID reads a decimal id. It refuses signs, fractions and blanks.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || s == "" || s[0] == '+' {
		return 0, Errorf(Invalid, "invalid id %q: want a decimal number", s)
	}
	return ID(n), nil
}

func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// UnmarshalJSON accepts 123, "123" and null (which leaves 0).
func (id *ID) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if bytes.Equal(b, []byte("null")) {
		*id = 0
		return nil
	}
	s := string(b)
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	n, err := ParseID(s)
	if err != nil {
		return fmt.Errorf("invalid id %s: want an integer or a decimal string", b)
	}
	*id = n
	return nil
}

// StringID is an ID that is written as a JSON string, for the routes whose
// clients expect one. It is read as leniently as ID.
type StringID ID

func (id StringID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, ID(id).String()), nil
}

func (id *StringID) UnmarshalJSON(b []byte) error { return (*ID)(id).UnmarshalJSON(b) }
