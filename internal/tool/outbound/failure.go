package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
)

// StatusError classifies the status of an answer; nil for 200-299. What is the
// request in a few words.
func StatusError(what string, status int, header http.Header) *tool.Error {
	if status >= 200 && status <= 299 {
		return nil
	}
	e := &tool.Error{
		Kind: tool.KindClientError, Code: fmt.Sprintf("HTTP_%d", status), HTTPStatus: status,
		RetryAfter: retryAfter(header.Get("Retry-After"), time.Now()),
		Message:    strings.TrimSpace(fmt.Sprintf("%s: HTTP %d %s", what, status, http.StatusText(status))),
	}
	switch {
	case status == http.StatusTooManyRequests:
		e.Kind, e.Retryable = tool.KindRateLimit, true
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Kind = tool.KindAuth
	case status == http.StatusNotFound:
		e.Kind = tool.KindNotFound
	case status >= 500:
		e.Kind, e.Retryable = tool.KindServerError, true
	}
	return e
}

// retryAfter reads both forms of the header: seconds and an HTTP date. It is
// 0 when absent, unreadable or in the past.
func retryAfter(value string, now time.Time) time.Duration {
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
		if seconds > 0 && seconds < 3.2e9 {
			return time.Duration(seconds * float64(time.Second))
		}
		return 0
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// Failure explains why there is no answer. The text of a *url.Error is never
// used: it repeats the URL, password included.
func Failure(ctx context.Context, what string, limit time.Duration, err error) *tool.Error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		e := tool.Ended(ctx, what, limit)
		if e.Kind == tool.KindTimeout {
			e.Code = "CONN_TIMEOUT"
		}
		return e
	}
	for {
		ue, ok := errors.AsType[*url.Error](err)
		if !ok {
			break
		}
		err = ue.Err
	}
	e := classify(err)
	e.Message = what + ": " + e.Message
	return e
}

func classify(err error) *tool.Error {
	if denied, ok := errors.AsType[*egress.Denied](err); ok {
		return &tool.Error{Kind: tool.KindAuth, Code: "EGRESS_DENIED", Message: denied.Error()}
	}
	if errors.Is(err, egress.ErrRedirects) {
		return &tool.Error{
			Kind: tool.KindClientError, Code: "TOO_MANY_REDIRECTS",
			Message: fmt.Sprintf("more than %d redirects (does it redirect to itself?)", egress.MaxRedirects),
		}
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return connError("DNS_ERROR", fmt.Sprintf("host %q cannot be found (is the name right, and does DNS work here?)", dns.Name))
	}
	if tlsErr := classifyTLS(err); tlsErr != nil {
		return tlsErr
	}
	if netErr, ok := errors.AsType[net.Error](err); ok && netErr.Timeout() {
		return &tool.Error{
			Kind: tool.KindTimeout, Code: "CONN_TIMEOUT", Retryable: true,
			Message: "no connection in time (is the host up and reachable from here?)",
		}
	}
	return classifyTransport(err)
}

func connError(code, message string) *tool.Error {
	return &tool.Error{Kind: tool.KindConnection, Code: code, Message: message, Retryable: true}
}

func classifyTransport(err error) *tool.Error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return connError("CONN_REFUSED", "connection refused (is the service running and the port right?)")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return connError("CONN_ERROR", "the server dropped the connection")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return connError("CONN_ERROR", "the server closed the connection before the answer was complete")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return connError("CONN_ERROR", "the host cannot be reached from here")
	case strings.Contains(err.Error(), "invalid header field"):
		return tool.ConfigErrorf("%s", strings.TrimPrefix(err.Error(), "net/http: "))
	case strings.Contains(err.Error(), "Location header"):
		// The location itself may hold credentials.
		return &tool.Error{Kind: tool.KindClientError, Code: "BAD_REDIRECT", Message: "the server redirects to an invalid location"}
	}
	return connError("CONN_ERROR", err.Error())
}

// classifyTLS finds failures another try cannot mend; nil when err is not one.
func classifyTLS(err error) *tool.Error {
	fail := func(message string) *tool.Error {
		return &tool.Error{Kind: tool.KindConnection, Code: "TLS_ERROR", Message: message}
	}
	if verify, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		if _, isName := errors.AsType[x509.HostnameError](verify); isName {
			return fail("the server's certificate is for another host")
		}
		if invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](verify); isInvalid && invalid.Reason == x509.Expired {
			return fail("the server's certificate has expired or is not valid yet")
		}
		return fail("the server's certificate is not trusted here (add its authority to the system, or set verify_ssl: false for a test service)")
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return fail("the server does not speak TLS on this port (should the url start with http://?)")
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return fail("the server refused the TLS connection: " + err.Error())
	}
	return nil
}
