package tool

// Trace is the W3C trace context of an action, for whatever it reaches. The zero
// value is none.
type Trace struct{ Parent, State string }

// Header adds the context to the header of a request, unless the author has
// said which one goes out.
func (t Trace) Header(h map[string][]string) {
	if t.Parent == "" || len(h["Traceparent"]) > 0 {
		return
	}
	h["Traceparent"] = []string{t.Parent}
	if t.State != "" {
		h["Tracestate"] = []string{t.State}
	}
}

// Environ adds the context to the environment of a process.
func (t Trace) Environ(env map[string]string) {
	if t.Parent == "" {
		return
	}
	env["TRACEPARENT"] = t.Parent
	if t.State != "" {
		env["TRACESTATE"] = t.State
	}
}
