// Package jinja is the template language of playbooks: Jinja2 syntax and
// semantics over JSON-like values.
//
// A source is lexed, parsed by a Pratt parser into a tree whose nodes know
// their place, and compiled into Go closures. A compiled Template is immutable
// and may be used by many goroutines. Three questions can be asked of it: its
// text (Render), its native value (Value) and its truth (Truth).
//
// Values are nil, bool, int64, float64, string, []any and *Dict; a
// map[string]any is accepted wherever a *Dict is and is walked in key order, a
// json.RawMessage is decoded when it is first touched, and other Go scalars,
// slices and maps are converted on the way in. Values are never modified: a
// template cannot change what it is given, so callers may share them.
//
// Which names a template reads (Free) and which functions of the host it calls
// (Calls) is known when it is compiled. A host function is a Func in the scope;
// its name must be one of those that this package declares as provided, so that
// a misspelt function is refused before anything runs.
//
// Every evaluation runs under Limits, so that no template, however written,
// takes more than a bounded amount of work and memory.
//
// The package is pure. It must not know about playbooks, executions, files,
// clocks, the network or goroutines.
package jinja
