package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) resultRoutes() []route {
	const stored = `{ref, store, scope, bytes, sha256, media_type?, expires_at}`
	put := entry(http.MethodPut, "/api/result/{execution_id}", Worker, s.putResult, "puts a value aside that is too large for the log", `{name, data, scope?, source_step?, store?, ttl?}`, stored).within(ByExecution).noted(ofWorkers)
	put.maxBody = maxResultBody
	blob := entry(http.MethodPut, "/api/result/{execution_id}/blob", Worker, s.putBlob, "puts the body aside as it is, of any size", "?name, scope, ttl, store, source_step, media_type; bytes", stored).within(ByExecution).noted(ofWorkers)
	blob.maxBody, blob.stream = math.MaxInt64, true
	get := entry(http.MethodGet, "/api/result/resolve", Viewer, s.result, "returns a value that was put aside, as it was put; ranges of bytes can be asked for", "?ref", `value`).within(Permitted)
	get.stream = true
	collect := entry(http.MethodPost, "/api/internal/results/collect", Internal, s.collectResults, "removes values whose time to be kept is over", "?dry_run", collectAnswer).within(Everywhere).noted("results.collected")
	collect.stream = true
	return []route{
		get, put, blob,
		entry(http.MethodGet, "/api/result/{execution_id}/list", Viewer, s.listResults, "lists the values of an execution that were put aside", "?after, limit", `{results: [{ref, name, source_step?, store, scope, bytes, sha256, media_type?, created_at, expires_at}], next?}`).within(ByExecution),
		entry(http.MethodDelete, "/api/result/{execution_id}", Operator, s.removeResults, "removes the values of an execution that were put aside", "?scope", `{removed}`).within(ByExecution).noted("results.removed"),
		entry(http.MethodGet, "/api/internal/results/collect", Internal, s.collectableResults, "tells which values would be removed because their time is over", "", collectAnswer).within(Everywhere),
		collect,
	}
}

const collectAnswer = `{dry_run, looked, removed, bytes, kept, failed, results: [{ref, store, scope, bytes, why}]}`

// maxResultBody bounds the body that brings a result within JSON; other bodies
// carry references to such values and may be far smaller.
const maxResultBody = 64 << 20

// bodyIdle is how long a sender may pause within a body of any size.
const bodyIdle = 2 * time.Minute

// resultBody is a value to put aside. Senders may say more (correlation,
// compress); the answer tells what became of it.
type resultBody struct {
	Name       string          `json:"name"`
	Data       json.RawMessage `json:"data"` // null is a value, too
	Scope      string          `json:"scope"`
	SourceStep string          `json:"source_step"`
	Store      string          `json:"store"`
	TTL        string          `json:"ttl"`
}

var resultScopes = []string{"", "step", "execution", "workflow", "permanent"}

func checkScope(scope string) error {
	if !slices.Contains(resultScopes, scope) {
		return event.Errorf(event.Invalid, "scope: want step, execution, workflow or permanent, got %q", scope)
	}
	return nil
}

func (s *Server) putResult(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	var body resultBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	switch {
	case body.Name == "":
		return event.Errorf(event.Invalid, "name is missing")
	case body.Data == nil:
		return event.Errorf(event.Invalid, "data is missing")
	}
	if err := checkScope(body.Scope); err != nil {
		return err
	}
	o := event.ResultOptions{Name: body.Name, SourceStep: body.SourceStep, Scope: body.Scope, TTL: body.TTL, Store: body.Store}
	stored, err := s.opt.Plane.PutBlob(r.Context(), id, o, bytes.NewReader(body.Data))
	if err != nil {
		return renamed(err, "Execution not found: %d", id)
	}
	return respond(w, stored)
}

// putBlob stores the body while it arrives.
func (s *Server) putBlob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	o := event.ResultOptions{
		Name: q.Get("name"), SourceStep: q.Get("source_step"), Scope: q.Get("scope"), TTL: q.Get("ttl"), Store: q.Get("store"), MediaType: q.Get("media_type"),
	}
	if o.Name == "" {
		return event.Errorf(event.Invalid, "name is missing")
	}
	if err := checkScope(o.Scope); err != nil {
		return err
	}
	arriving := &arrival{r: r.Body, rc: http.NewResponseController(w)}
	body, err := decoded(arriving, r.Header.Get("Content-Encoding"))
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	stored, err := s.opt.Plane.PutBlob(r.Context(), id, o, body)
	_ = arriving.rc.SetWriteDeadline(time.Now().Add(writeWait))
	if arriving.err != nil {
		return unreadable(arriving.err)
	}
	if err != nil {
		return renamed(err, "Execution not found: %d", id)
	}
	return respond(w, stored)
}

// arrival is a body that may take as long as it likes, as long as it moves.
type arrival struct {
	r   io.Reader
	rc  *http.ResponseController
	err error // why it did not arrive
}

func (a *arrival) Read(p []byte) (int, error) {
	if err := a.rc.SetReadDeadline(time.Now().Add(bodyIdle)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := a.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.err = err
	}
	return n, err
}

// decoded is the body without the encoding it travelled in.
func decoded(body io.Reader, encoding string) (io.ReadCloser, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return io.NopCloser(body), nil
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, event.Errorf(event.BadRequest, "the body is not zstd: %w", err)
		}
		return &unpacked{z}, nil
	}
	return nil, &failure{
		Status: http.StatusUnsupportedMediaType, Code: string(event.BadRequest),
		Message: fmt.Sprintf("Content-Encoding: want zstd or none, got %q", encoding),
	}
}

// unpacked is a compressed body; broken compression is the sender's fault.
type unpacked struct{ z *zstd.Decoder }

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.z.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = event.Errorf(event.BadRequest, "read the zstd body: %w", err)
	}
	return n, err
}

func (u *unpacked) Close() error { u.z.Close(); return nil }

// result answers with the bare value, or the range of it that was asked for.
func (s *Server) result(w http.ResponseWriter, r *http.Request) error {
	ref := r.URL.Query().Get("ref")
	if ref == "" {
		return event.Errorf(event.BadRequest, "ref is missing: which result?")
	}
	plain, _, _ := strings.Cut(ref, "#")
	of, err := event.ParseResultRef(plain)
	if err != nil {
		return unreadableRef(err)
	}
	if err := s.permitExecution(r.Context(), of.Execution); err != nil {
		return resultGone(err)
	}
	first := int64(0)
	if r.Header.Get("Range") != "" {
		first = 1 // which range that is depends on the size
	}
	body, at, err := s.opt.Plane.OpenBlob(r.Context(), ref, 0, first)
	if err != nil {
		return resultGone(err)
	}
	defer func() { _ = body.Close() }()
	h := w.Header()
	about(h, &at)
	if match := r.Header.Get("If-None-Match"); match != "" && strings.Contains(match, h.Get("ETag")) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	offset, length, partial, err := byteRange(r, h.Get("ETag"), at.Bytes)
	if err != nil {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", at.Bytes))
		return err
	}
	status := http.StatusOK
	if first > 0 {
		part, _, err := s.opt.Plane.OpenBlob(r.Context(), ref, offset, length)
		if err != nil {
			return resultGone(err)
		}
		defer func() { _ = part.Close() }()
		body = part
	}
	if partial {
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, at.Bytes))
	}
	h.Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(status)
	return s.send(w, body, ref)
}

// resultGone keeps the words about results that were collected, and gives all
// others that are not there the words clients expect.
func resultGone(err error) error {
	if e, ok := errors.AsType[*event.Error](err); ok && e.Reason == "collected" {
		return err
	}
	return renamed(err, "result not found")
}

// about writes what is known of a value. What is not JSON must not be run by a
// browser that is led here.
func about(h http.Header, at *event.StoredResult) {
	h.Set("ETag", `"`+at.SHA256+`"`)
	h.Set("Accept-Ranges", "bytes")
	h.Set("X-Noetl-Store", at.Store)
	h.Set("X-Noetl-Scope", at.Scope)
	if at.ExpiresAt != nil {
		h.Set("X-Noetl-Expires", at.ExpiresAt.Format(time.RFC3339Nano))
	}
	h.Set("Content-Type", "application/json")
	if at.MediaType != "" {
		h.Set("Content-Type", at.MediaType)
		h.Set("Content-Disposition", "attachment")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "sandbox")
	}
}

// byteRange reads what part is asked for. Forms we do not know mean the whole, as
// the protocol has it; one behind the end cannot be satisfied.
func byteRange(r *http.Request, tag string, size int64) (offset, length int64, partial bool, err error) {
	text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if only := r.Header.Get("If-Range"); !ok || strings.Contains(text, ",") || only != "" && only != tag {
		return 0, size, false, nil
	}
	from, to, ok := strings.Cut(strings.TrimSpace(text), "-")
	first, errFrom := strconv.ParseInt(from, 10, 64)
	last, errTo := strconv.ParseInt(to, 10, 64)
	switch {
	case !ok || from != "" && errFrom != nil || to != "" && errTo != nil || from == "" && to == "" || first < 0 || last < 0:
		return 0, size, false, nil
	case from == "":
		first, last = max(0, size-last), size-1
		if to == "0" {
			first = size
		}
	case to == "":
		last = size - 1
	}
	last = min(last, size-1)
	if first >= size || first > last {
		return 0, 0, false, &failure{
			Status: http.StatusRequestedRangeNotSatisfiable, Code: string(event.Invalid),
			Message: fmt.Sprintf("the range lies outside of the result, which has %d bytes", size),
		}
	}
	return first, last - first + 1, true, nil
}

// send copies a value to a client that may take its time, as long as it takes
// something. A value that turns out to be damaged ends the connection: the
// length that was announced tells the client.
func (s *Server) send(w http.ResponseWriter, body io.Reader, ref string) error {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{})
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if err := rc.SetWriteDeadline(time.Now().Add(writeWait)); err != nil && !errors.Is(err, http.ErrNotSupported) && !errors.Is(err, os.ErrClosed) {
				return nil
			}
			if _, err := w.Write(buf[:n]); err != nil {
				return nil // a client that went away is nobody's error
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			s.opt.Logger.Error("a result could not be sent", "execution_id", ownerOf(ref), "ref", ref, "error", err)
			panic(http.ErrAbortHandler)
		}
	}
}

// unreadableRef makes a bad request of a reference nobody can read: this
// route's clients do not expect anything else.
func unreadableRef(err error) error {
	f := failureOf(err)
	f.Status, f.Code = http.StatusBadRequest, string(event.BadRequest)
	return f
}

// listedMost bounds a page of results.
const listedMost = 1000

func (s *Server) listResults(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	limit := listedMost
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > listedMost {
			return event.Errorf(event.Invalid, "limit: want a number from 1 to %d", listedMost)
		}
	}
	rows, err := s.opt.Plane.Results(r.Context(), id, r.URL.Query().Get("after"), limit)
	if err != nil {
		return renamed(err, "Execution not found: %d", id)
	}
	answer := struct {
		Results []control.ListedResult `json:"results"`
		Next    string                 `json:"next,omitempty"` // the value of after for the next page
	}{Results: rows}
	if answer.Results == nil {
		answer.Results = []control.ListedResult{}
	}
	if len(rows) == limit {
		answer.Next = rows[limit-1].Ref
	}
	return respond(w, answer)
}

func (s *Server) removeResults(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	scope := r.URL.Query().Get("scope")
	if err := checkScope(scope); err != nil {
		return err
	}
	n, err := s.opt.Plane.RemoveResults(r.Context(), id, scope)
	if err != nil {
		return renamed(err, "Execution not found: %d", id)
	}
	return respond(w, map[string]int{"removed": n})
}

func (s *Server) collectableResults(w http.ResponseWriter, r *http.Request) error {
	return s.collect(w, r, true)
}

func (s *Server) collectResults(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	dry := q.Has("dry_run") && q.Get("dry_run") != "false" && q.Get("dry_run") != "0"
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	return s.collect(w, r, dry)
}

func (s *Server) collect(w http.ResponseWriter, r *http.Request, dry bool) error {
	report, err := s.opt.Plane.CollectResults(r.Context(), dry)
	if err != nil {
		return err
	}
	return respond(w, report)
}

// ownerOf is the execution that a reference names; 0 when it names none.
func ownerOf(ref string) event.ID {
	ref, _, _ = strings.Cut(ref, "#")
	r, err := event.ParseResultRef(ref)
	if err != nil {
		return 0
	}
	return r.Execution
}
