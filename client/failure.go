package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// codeOf is the meaning of the statuses a server, or a proxy before it, sends.
var codeOf = map[int]event.Code{
	http.StatusBadRequest:                   event.BadRequest,
	http.StatusUnauthorized:                 event.Unauthorized,
	http.StatusForbidden:                    event.Forbidden,
	http.StatusNotFound:                     event.NotFound,
	http.StatusMethodNotAllowed:             event.BadRequest,
	http.StatusRequestTimeout:               event.Unavailable,
	http.StatusConflict:                     event.Conflict,
	http.StatusRequestEntityTooLarge:        event.Limit,
	http.StatusUnprocessableEntity:          event.Invalid,
	http.StatusUnsupportedMediaType:         event.BadRequest,
	http.StatusRequestedRangeNotSatisfiable: event.Invalid,
	http.StatusTooEarly:                     event.Unavailable,
	http.StatusTooManyRequests:              event.Unavailable,
	http.StatusBadGateway:                   event.Unavailable,
	http.StatusServiceUnavailable:           event.Unavailable,
	http.StatusGatewayTimeout:               event.Unavailable,
}

// refused makes the error a failed answer stands for.
func refused(resp *http.Response, body []byte) error {
	var f struct {
		Error  string `json:"error"`
		Reason string `json:"reason"`
		Remedy string `json:"remedy"`
	}
	_ = json.Unmarshal(body, &f) // a proxy's page is not JSON: the status speaks
	message := cmp.Or(f.Error, fmt.Sprintf("%s %s: the server answered %s", resp.Request.Method, resp.Request.URL.Path, resp.Status))
	return &event.Error{
		Code:       cmp.Or(codeOf[resp.StatusCode], event.Internal),
		Message:    message,
		Reason:     f.Reason,
		Remedy:     f.Remedy,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After")),
	}
}

// retryAfter reads a number of seconds; a date is not worth a clock.
func retryAfter(header string) time.Duration {
	n, err := strconv.Atoi(header)
	if err != nil || n < 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// unreachable makes the error of a call that got no answer. The cause stays
// reachable, so that errors.Is finds the end of a context.
func unreachable(err error) error {
	cause := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		cause = u.Err
	}
	return &event.Error{Code: event.Unavailable, Message: "the server cannot be reached: " + cause.Error(), Remedy: "does it run at this address?", Reason: "network", Err: err}
}
