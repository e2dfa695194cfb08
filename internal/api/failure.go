package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/form"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/store"
)

// retryAfter is the pause, in seconds, asked of clients that should try again.
const retryAfter = "2"

// statusOf is the one place where codes become HTTP statuses.
var statusOf = map[event.Code]int{
	event.Invalid:      http.StatusUnprocessableEntity,
	event.BadRequest:   http.StatusBadRequest,
	event.NotFound:     http.StatusNotFound,
	event.Conflict:     http.StatusConflict,
	event.Unauthorized: http.StatusUnauthorized,
	event.Forbidden:    http.StatusForbidden,
	event.Limit:        http.StatusRequestEntityTooLarge,
	event.Unavailable:  http.StatusServiceUnavailable,
	event.Internal:     http.StatusInternalServerError,
}

// failure is the body of every answer that is not a success.
type failure struct {
	Message  string            `json:"error"`
	Status   int               `json:"status"`
	Code     string            `json:"code,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Remedy   string            `json:"remedy,omitempty"`
	ID       string            `json:"id,omitempty"` // finds the cause in the server's log
	Problems playbook.Problems `json:"problems,omitempty"`
	Misfits  form.Misfits      `json:"misfits,omitempty"` // where an answer does not fit its form

	retry time.Duration // when to come back after too many failures
}

func (f *failure) Error() string { return f.Message }

// failureOf translates err. Errors without a code are our own fault: the caller
// gets an id, and only the log gets the text.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	e, ok := errors.AsType[*event.Error](err)
	switch {
	case ok:
	case errors.Is(err, context.DeadlineExceeded):
		e = event.Errorf(event.Unavailable, "the request took too long")
	case errors.Is(err, context.Canceled):
		e = event.Errorf(event.Unavailable, "the request was given up")
	default:
		return internalFailure()
	}
	f := &failure{Message: e.Message, Status: statusOf[e.Code], Code: string(e.Code), Reason: e.Reason, Remedy: e.Remedy}
	if f.Status == 0 {
		return internalFailure()
	}
	if ps, ok := errors.AsType[playbook.Problems](err); ok {
		f.Problems = ps
	}
	if m, ok := errors.AsType[form.Misfits](err); ok {
		f.Misfits = m
	}
	if e.Code == event.Limit && e.Reason == tooManyFailures {
		f.Status, f.retry = http.StatusTooManyRequests, cmp.Or(e.RetryAfter, failurePause)
	}
	if f.Status == http.StatusInternalServerError {
		f.ID = rand.Text()[:12]
	}
	return f
}

// tooManyFailures is why an address is not listened to for a while, and how
// long it is asked to wait unless the error says.
const (
	tooManyFailures = "too_many_failures"
	failurePause    = time.Minute
)

func internalFailure() *failure {
	id := rand.Text()[:12]
	return &failure{
		Message: "internal error " + id,
		Status:  http.StatusInternalServerError,
		Code:    string(event.Internal),
		ID:      id,
		Remedy:  "look for this id in the server's log",
	}
}

func (f *failure) write(w http.ResponseWriter) {
	if f.Status == http.StatusServiceUnavailable || f.Reason == "active_claim" {
		w.Header().Set("Retry-After", retryAfter)
	}
	if f.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(f.retry.Seconds()))))
	}
	buf := scratch()
	defer done(buf)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)              // remedies show placeholders such as <id>
	if err := enc.Encode(f); err != nil { // a failure holds only strings and numbers
		panic("encode failure: " + err.Error())
	}
	writeBody(w, f.Status, bytes.TrimSpace(buf.Bytes()))
}

// renamed gives a NotFound error the words this route promises its clients;
// other errors pass unchanged.
func renamed(err error, format string, args ...any) error {
	if err == nil || event.CodeOf(err) != event.NotFound || errors.Is(err, store.ErrRemoved) {
		return err
	}
	e := event.Errorf(event.NotFound, format, args...)
	e.Err = err
	return e
}
