// Package wait asks for a pause: for a while, until a time, or until somebody
// sends a signal. It only writes down what is waited for; the control plane
// wakes the step, so that no worker is held. It must not know how.
package wait

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/form"
	"github.com/noetl/noetl-go/internal/tool"
)

const (
	// longest is the longest wait that is taken literally; more is a mistake.
	longest = 10 * 365 * 24 * time.Hour
	// maxName and maxMessage bound what is kept with every wait.
	maxName, maxMessage = 200, 8 << 10
	// defaultApproval names the signal of an approval whose author named none.
	defaultApproval = "approval"
)

// Tool turns its config into a wait.
type Tool struct{ now func() time.Time }

var _ tool.Tool = Tool{}

// New makes the tool.
func New() Tool { return Tool{time.Now} }

// Kind is "wait".
func (Tool) Kind() string { return "wait" }

// Run answers with a Park, or at once when there is nothing left to wait for.
// It fails only when ctx has ended or the config is wrong.
func (t Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, "wait", 0)
	}
	r := reader{f: call.Fields()}
	s := r.settings()
	if r.err != nil {
		return nil, r.err
	}
	if s.signal != "" {
		return s.forSignal()
	}
	delay := s.duration
	if s.timed {
		delay = s.until.Sub(t.now())
	}
	return pause(delay)
}

// pause waits until time has passed.
func pause(delay time.Duration) (*tool.Result, error) {
	if delay > longest {
		return nil, tool.ConfigErrorf("wait of %s is longer than ten years; check duration or until", delay.Round(time.Second))
	}
	data, err := tool.Encode(elapsed{Status: "elapsed", Waited: seconds(max(delay, 0))})
	if err != nil {
		return nil, err
	}
	if delay <= 0 {
		return &tool.Result{Data: data}, nil
	}
	return &tool.Result{Park: &event.Park{Delay: delay.Seconds(), Elapsed: &event.Wake{Data: data}}}, nil
}

// elapsed is the data of a wait that time ended.
type elapsed struct {
	Status string  `json:"status"`
	Signal string  `json:"signal,omitempty"`
	Waited float64 `json:"waited_seconds"`
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// settings are the fields of a call.
type settings struct {
	duration  time.Duration
	until     time.Time
	timed     bool // until was given
	signal    string
	message   string
	approval  bool
	form      json.RawMessage
	timeout   time.Duration
	onTimeout string
	onReject  string
}

// forSignal waits until somebody sends it, or for as long as the author says.
func (s *settings) forSignal() (*tool.Result, error) {
	park := &event.Park{Signal: &event.Signal{Name: s.signal, Message: s.message, Form: s.form}}
	if s.approval {
		park.Signal.Approve = s.onReject
	}
	if s.timeout > 0 {
		over, err := s.over()
		if err != nil {
			return nil, err
		}
		park.Delay, park.Elapsed = s.timeout.Seconds(), over
	}
	return &tool.Result{Park: park}, nil
}

// over is what it means that nobody sent the signal in time.
func (s *settings) over() (*event.Wake, error) {
	if s.onTimeout == goesOn {
		data, err := tool.Encode(elapsed{Status: "timeout", Signal: s.signal, Waited: seconds(s.timeout)})
		return &event.Wake{Data: data}, err
	}
	failure, err := tool.Encode(&tool.Error{
		Kind: tool.KindTimeout, Code: "TIMEOUT",
		Message: "nobody sent the signal " + s.signal + " within " + s.timeout.String(),
	})
	return &event.Wake{Error: failure}, err
}

// reader reads fields and keeps the first complaint.
type reader struct {
	f   tool.Fields
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) settings() *settings {
	f := r.f
	s := &settings{}
	var err error
	keep := func() { // the first complaint counts
		if err != nil {
			r.fail(err)
		}
	}
	s.duration, err = f.Duration("duration", "for")
	keep()
	s.until, s.timed = r.moment()
	s.message, err = f.String("message")
	keep()
	s.approval, err = f.Bool(false, "approval")
	keep()
	s.timeout, err = f.Duration("timeout", "timeout_seconds")
	keep()
	s.signal = r.name(s.approval)
	s.form = r.form(s.approval)
	s.onTimeout, s.onReject = r.word("on_timeout"), r.word("on_reject")
	r.check(s)
	return s
}

// check refuses what cannot be meant together.
func (r *reader) check(s *settings) {
	f := r.f
	_, _, lasts := f.First("duration", "for")
	given := 0
	for _, is := range []bool{lasts, s.timed, s.signal != ""} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		r.fail(tool.ConfigErrorf("wait needs duration, until, signal or approval; an expression that gave nothing looks the same as a missing one"))
	case given > 1:
		r.fail(tool.ConfigErrorf("wait takes one of duration, until and signal; how long to wait for a signal is its timeout"))
	case s.signal == "" && s.timeout > 0:
		r.fail(tool.ConfigErrorf("timeout belongs to a signal; a wait for time ends by itself"))
	case s.timeout > longest:
		r.fail(tool.ConfigErrorf("timeout is longer than ten years; leave it out to wait for ever"))
	case len(s.signal) > maxName:
		r.fail(tool.ConfigErrorf("signal has %d bytes, at most %d are possible", len(s.signal), maxName))
	case len(s.message) > maxMessage:
		r.fail(tool.ConfigErrorf("message has %d bytes, at most %d are possible", len(s.message), maxMessage))
	}
}

// moment is the time of until: RFC 3339, with or without a zone (then UTC), or
// seconds since 1970.
func (r *reader) moment() (at time.Time, given bool) {
	text, err := r.f.String("until")
	if err != nil {
		r.fail(err)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, false
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e12 {
		whole, part := math.Modf(n)
		return time.Unix(int64(whole), int64(part*1e9)), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	r.fail(tool.ConfigErrorf("until: %q is not a time; write 2030-01-31T12:00:00Z or seconds since 1970", text))
	return time.Time{}, true
}

// name is the signal to wait for; an approval has one without being asked.
func (r *reader) name(approval bool) string {
	name, err := r.f.String("signal")
	if err != nil {
		r.fail(err)
	}
	if name = strings.TrimSpace(name); name == "" && approval {
		return defaultApproval
	}
	return name
}

// What the end of a wait may mean, in the words of a Park.
const (
	fails  = event.RejectFails
	goesOn = event.RejectGoesOn
)

func (r *reader) word(name string) string {
	f := r.f
	text, err := f.String(name)
	if err != nil {
		r.fail(err)
	}
	switch text = strings.ToLower(strings.TrimSpace(text)); text {
	case "", fails:
		return fails
	case goesOn:
		return goesOn
	}
	r.fail(tool.ConfigErrorf("%s must be fail or continue, not %q", name, text))
	return fails
}

// form is what may be sent. An approval asks for its own fields beside those of
// the author.
func (r *reader) form(approval bool) json.RawMessage {
	fields, err := r.f.Object("form")
	if err != nil {
		r.fail(err)
	}
	if fields == nil && !approval {
		return nil
	}
	schema, err := form.Schema(fields)
	if err == nil && approval {
		schema, err = form.With(schema, approvalFields)
	}
	if err != nil {
		r.fail(tool.ConfigErrorf("form: %v", err))
	}
	return schema
}

// approvalFields are what an approval is answered with.
var approvalFields = map[string]any{
	"approved": map[string]any{"type": "boolean", "title": "Approve", "required": true},
	"comment":  map[string]any{"type": "string", "title": "Comment"},
}
