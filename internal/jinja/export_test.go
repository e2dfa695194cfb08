package jinja

import "slices"

// Builtins lists the names that templates can use, by kind. The tests that are
// spelled as operators are left out: they have names as well.
func Builtins() map[string][]string {
	return map[string][]string{
		"filter":   knownNames(filters),
		"test":     slices.DeleteFunc(knownNames(tests), func(name string) bool { return name[0] < 'a' }),
		"function": knownNames(functions),
		"method":   knownNames(stringMethods),
	}
}
