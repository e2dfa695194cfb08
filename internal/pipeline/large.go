package pipeline

import (
	"context"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/tool"
)

// storeTime bounds how long the data of a command that has ended may take to
// be stored. It does not end with the command's context: what was done has
// been done, and doing it again would be worse.
const (
	storeTime = 30 * time.Second
	copyTime  = 10 * time.Minute // of data that is too large to be held
)

// stored is the data of a command that is kept outside its event.
type stored struct {
	at        event.StoredResult
	extracted json.RawMessage
}

// put stores the command's data when it is too large for the event; nil means
// that it travels in the event.
func (s *run) put(ctx context.Context) (*stored, *tool.Error) {
	if s.plan.single && s.last != nil && s.last.stored != nil {
		return &stored{at: s.last.stored.StoredResult, extracted: s.last.stored.Summary}, nil
	}
	for _, o := range s.results.outcomes {
		if o.stored != nil && !s.plan.single {
			return s.putTogether(ctx)
		}
	}
	limit := s.inlineLimit()
	if s.opt.Results == nil || s.dataSize() <= limit {
		return nil, nil
	}
	data := json.RawMessage(s.appendData(make([]byte, 0, s.dataSize()+256)))
	if len(data) <= limit {
		return nil, nil
	}
	at, failed := s.putAside(ctx, stepOf(s.cmd), data)
	if failed != nil {
		return nil, failed
	}
	out := &stored{at: at}
	summarise := scope.SummariseSequence
	if s.plan.single {
		summarise = scope.Summarise
	}
	out.extracted = summarise(data, selections(s.cmd.Meta.Output))
	return out, nil
}

// inlineLimit is how many bytes of data the command's event may hold.
func (s *run) inlineLimit() int {
	if output := s.cmd.Meta.Output; output != nil && output.InlineMax > 0 {
		return output.InlineMax
	}
	return s.opt.InlineLimit
}

// putAside stores what is too large for an event.
func (s *run) putAside(ctx context.Context, name string, data json.RawMessage) (at event.StoredResult, _ *tool.Error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	err := s.persist(ctx, func() (err error) {
		at, err = s.opt.Results.PutResult(ctx, s.cmd.ExecutionID, name, data)
		return err
	})
	if err != nil {
		return at, &tool.Error{
			Kind: tool.KindResourceLimit, Code: "RESULT_NOT_STORED", Retryable: transient(err),
			Message: "the result is too large for an event and could not be stored: " + err.Error(),
		}
	}
	return at, nil
}

func selections(o *event.Output) []scope.Selection {
	if o == nil {
		return nil
	}
	out := make([]scope.Selection, len(o.Select))
	for i, sel := range o.Select {
		out[i] = scope.Selection(sel)
	}
	return out
}

// appendReference writes where the data is kept and what is known of it
// without a look at the whole.
func (w *stored) appendReference(b []byte) []byte {
	ref, _ := tool.Encode(struct {
		Kind      string          `json:"kind"`
		Ref       string          `json:"ref"`
		Store     string          `json:"store,omitempty"`
		Scope     string          `json:"scope,omitempty"`
		Meta      referenceMeta   `json:"meta"`
		Extracted json.RawMessage `json:"extracted"`
	}{
		"result_ref", w.at.Ref, w.at.Store, w.at.Scope,
		referenceMeta{w.at.Bytes, w.at.SHA256, "application/json", "application/json"},
		w.extracted,
	}) // all of it has a JSON form
	return append(append(b, `,"reference":`...), ref...)
}

type referenceMeta struct {
	Bytes       int64  `json:"bytes"`
	SHA256      string `json:"sha256"`
	MediaType   string `json:"media_type"`
	ContentType string `json:"content_type"`
}
