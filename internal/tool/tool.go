// Package tool is the contract between a worker and the actions it can run.
// A tool performs one external action; it knows nothing of workflows, events
// or the control plane. Each kind is a package of its own below this one.
package tool

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Tool runs one kind of action. Run must end soon after ctx does, leave no
// goroutine or process behind, and be safe for concurrent use.
//
// A returned *Error describes a failed action; its Result, when the tool has
// one (an HTTP answer, an exit code), is returned beside it. Any other error
// is reported as kind "internal".
type Tool interface {
	Kind() string
	Run(ctx context.Context, call *Call) (*Result, error)
}

// Call is one invocation. Config and Args are rendered, never template text.
// Config holds plain JSON-like Go values (nil, bool, int64, float64, string,
// []any, map[string]any) to be read; Args holds encoded JSON to be passed on,
// with the keys of objects in their own order.
type Call struct {
	Config      map[string]any                              // the tool's own fields, without input, set, spec and the like
	Ordered     func(field string) (json.RawMessage, error) // a field of Config encoded, keys in order; may be nil
	Args        map[string]any                              // the rendered input; for python, names in scope
	Variables   json.RawMessage                             // the command's render context
	ExecutionID string
	Step        string
	CommandID   string
	Attempt     int // of the command
	Run         int // counts the actions of the command, retries too; whoever runs it again after a crash gets the same number. 0 = not known
	ServerURL   string
	Timeout     time.Duration // upper bound of the action; 0 = none. ctx carries it too
	Log         io.Writer     // live output; never nil. Secrets are taken out on the way

	// Credentials finds credentials by alias, all or none; nil = none can be had.
	// What it gives is kept out of everything that is reported.
	Credentials func(ctx context.Context, aliases ...string) (map[string]*Credential, error)
	// Hide keeps further values out of everything that is reported: tokens the
	// tool was given on the way. May be nil, see Hidden.
	Hide func(values ...string)
	// Blobs is where large data goes and comes from; nil = nowhere.
	Blobs Blobs
	// InlineLimit is how many bytes of data a result should hold at most; larger
	// ones belong into Blobs. 0 = no limit.
	InlineLimit int
	// Again is the note of a former run of the same action, see Result.Again.
	Again json.RawMessage
	// Trace is passed on to whatever the action reaches.
	Trace Trace
}

// Hidden keeps values out of everything that is reported.
func (c *Call) Hidden(values ...string) {
	if c.Hide != nil {
		c.Hide(values...)
	}
}

// Blobs keeps data that is too large to be held in memory or in an event.
type Blobs interface {
	// Put stores all that r gives. JSON is checked and summarised on the way, so
	// that templates can look into it. Secrets are taken out.
	Put(ctx context.Context, b Blob, r io.Reader) (*Stored, error)
	// Open reads what a reference stands for, from offset on, at most length
	// bytes; 0 = to the end.
	Open(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, error)
}

// Blob describes data to be stored.
type Blob struct {
	Name      string // "" = the step
	MediaType string // "" = application/json
}

// Stored is data that is kept elsewhere.
type Stored struct {
	event.StoredResult
	Summary json.RawMessage `json:"summary,omitempty"` // of JSON: what is known of it without a look at the whole
}

// Encoded is a field of Config as JSON, keys of objects in the author's order
// where the caller kept it.
func (c *Call) Encoded(field string) (json.RawMessage, error) {
	if c.Ordered != nil {
		return c.Ordered(field)
	}
	return Encode(c.Config[field])
}

// Result is what an action produced. Data is JSON; nil means null.
type Result struct {
	Data     json.RawMessage
	Stdout   string
	Stderr   string
	ExitCode *int
	HTTP     *HTTPInfo // set by http: what policy rules see as output.http
	// Stored, when set, is where the data is; Data is not used.
	Stored *Stored
	// Park, when set, says that the action goes on elsewhere and what its end
	// will be known by; the other fields are not used.
	Park *event.Park
	// Again, beside Park, has the same action run again when the wait ends with
	// neither data nor an error, with this note in Call.Again: to look how
	// something stands that it started.
	Again json.RawMessage
}

// HTTPInfo is the transport side of an HTTP answer.
type HTTPInfo struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
}

// Unavailable stands for a tool this machine cannot offer: whoever calls it
// is told why.
func Unavailable(kind string, why error) Tool { return unavailable{kind, why} }

type unavailable struct {
	kind string
	why  error
}

func (u unavailable) Kind() string                                { return u.kind }
func (u unavailable) Run(context.Context, *Call) (*Result, error) { return nil, u.why }

// Set finds tools by kind.
type Set map[string]Tool

// NewSet makes a set; two tools of one kind are a programming error.
func NewSet(tools ...Tool) Set {
	s := make(Set, len(tools))
	for _, t := range tools {
		if _, dup := s[t.Kind()]; dup {
			panic("tool: two tools of kind " + t.Kind())
		}
		s[t.Kind()] = t
	}
	return s
}
