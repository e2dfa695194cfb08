package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/tool"
)

const jsonMedia = "application/json"

// blobs is where the tools of one command put large data.
type blobs struct{ s *run }

// Put implements tool.Blobs.
func (b blobs) Put(ctx context.Context, about tool.Blob, r io.Reader) (*tool.Stored, error) {
	s := b.s
	if about.Name == "" {
		about.Name = stepOf(s.cmd)
	}
	if about.MediaType == "" {
		about.MediaType = jsonMedia
	}
	o := s.resultOptions(about.Name, about.MediaType)
	if s.plan.single {
		return s.store(ctx, o, r, scope.NewStream(selections(s.cmd.Meta.Output)))
	}
	return s.store(ctx, o, r, scope.NewStream(nil))
}

// Open implements tool.Blobs.
func (b blobs) Open(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, error) {
	var body io.ReadCloser
	err := b.s.persist(ctx, func() (err error) {
		body, _, err = b.s.opt.Results.OpenBlob(ctx, ref, offset, length)
		return err
	})
	if err != nil {
		return nil, unavailable(ref, err.Error())
	}
	return body, nil
}

// resultOptions says how data of the command is to be kept, as its author wants.
func (s *run) resultOptions(name, mediaType string) event.ResultOptions {
	o := event.ResultOptions{Name: name, SourceStep: stepOf(s.cmd), MediaType: mediaType}
	if out := s.cmd.Meta.Output; out != nil {
		o.Store, o.Scope, o.TTL = out.Store, out.Scope, out.TTL
	}
	return o
}

// store keeps what r gives, without secrets and without holding it, and
// summarises it if it is JSON.
func (s *run) store(ctx context.Context, o event.ResultOptions, r io.Reader, summarise *scope.Stream) (*tool.Stored, error) {
	pr, pw := io.Pipe()
	summary := &summary{}
	if o.MediaType == jsonMedia {
		summary.stream = summarise
	}
	done := make(chan error, 1)
	go func() {
		err := s.copyClean(io.MultiWriter(pw, summary), o.MediaType, r)
		_ = pw.CloseWithError(err)
		done <- err
	}()
	at, err := s.opt.Results.PutBlob(ctx, s.cmd.ExecutionID, o, pr)
	_ = pr.CloseWithError(errors.New("the store stopped reading"))
	if copied := <-done; err == nil {
		err = copied
	}
	if err == nil {
		err = summary.close()
	}
	if err != nil {
		if e, ok := errors.AsType[*tool.Error](err); ok {
			return nil, e
		}
		return nil, &tool.Error{
			Kind: tool.KindStorageAccess, Code: "RESULT_NOT_STORED", Retryable: transient(err),
			Message: "the result could not be stored: " + err.Error(),
		}
	}
	return &tool.Stored{StoredResult: at, Summary: summary.made}, nil
}

// copyClean copies r to w without secrets. What is neither JSON nor text is
// taken as it is.
func (s *run) copyClean(w io.Writer, mediaType string, r io.Reader) error {
	var filter io.WriteCloser
	switch {
	case mediaType == jsonMedia:
		filter = s.vault.hidden.JSONText(w)
	case strings.HasPrefix(mediaType, "text/") || strings.Contains(mediaType, "json") || strings.Contains(mediaType, "xml"):
		filter = s.vault.hidden.Text(w)
	default:
		_, err := io.Copy(w, r)
		return err
	}
	if _, err := io.Copy(filter, r); err != nil {
		return err
	}
	return filter.Close()
}

// summary is made of JSON while it goes by. A nil stream takes everything.
type summary struct {
	stream *scope.Stream
	made   json.RawMessage
}

func (y *summary) Write(p []byte) (int, error) {
	if y.stream == nil {
		return len(p), nil
	}
	return y.stream.Write(p)
}

func (y *summary) close() (err error) {
	if y.stream != nil {
		y.made, err = y.stream.Close()
	}
	if err != nil {
		return &tool.Error{Kind: tool.KindParse, Code: "INVALID_DATA", Message: fmt.Sprintf("the data is not JSON: %v", err)}
	}
	return nil
}

// putTogether stores the data of several tasks as one value, of which some is
// stored already: the parts are copied, never held.
func (s *run) putTogether(ctx context.Context) (*stored, *tool.Error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyTime)
	defer cancel()
	pr, pw := io.Pipe()
	go func() { _ = pw.CloseWithError(s.writeData(ctx, pw)) }()
	defer func() { _ = pr.Close() }()
	kept, err := s.store(ctx, s.resultOptions(stepOf(s.cmd), jsonMedia), pr, scope.NewSequenceStream(selections(s.cmd.Meta.Output)))
	if err != nil {
		return nil, asToolError(err)
	}
	return &stored{at: kept.StoredResult, extracted: kept.Summary}, nil
}

// writeData writes what appendData appends, stored parts included.
func (s *run) writeData(ctx context.Context, w io.Writer) error {
	for i, label := range s.results.labels {
		lead := []byte{','}
		if i == 0 {
			lead[0] = '{'
		}
		if _, err := w.Write(append(appendString(lead, label), ':')); err != nil {
			return err
		}
		if err := s.writePart(ctx, w, s.results.outcomes[label]); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "}")
	return err
}

func (s *run) writePart(ctx context.Context, w io.Writer, o *outcome) error {
	if o.stored == nil {
		_, err := w.Write(o.data)
		return err
	}
	body, err := blobs{s}.Open(ctx, o.stored.Ref, 0, 0)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	_, err = io.Copy(w, body)
	return err
}
