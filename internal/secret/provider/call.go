package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/event"
)

const (
	callTime = 10 * time.Second
	slowTime = 15 * time.Second // for services that think longer
	// maxAnswer bounds what is read of an answer: no service keeps secrets above
	// a mebibyte.
	maxAnswer = 2 << 20
)

func transport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: slowTime,
		MaxIdleConns: 32, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
	}
}

// stay refuses redirects: what is sent must not go anywhere else.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// trusting is a client that trusts the certificates of a file too.
func trusting(file string) (*http.Client, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, event.Errorf(event.Invalid, "read the certificates in %s: %v", file, reason(err))
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, event.Errorf(event.Invalid, "%s holds no certificate", file)
	}
	t := transport((&net.Dialer{Timeout: 5 * time.Second}).DialContext)
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: t, CheckRedirect: stay}, nil
}

// call is one question to a service.
type call struct {
	provider string // for messages
	what     string // what is asked for, for messages: never a secret
	client   *http.Client
	time     time.Duration
	request  *http.Request
	// explain, when given, tells what a refusal means from its body; "" when the
	// status says it all.
	explain func(status int, body []byte) event.Code
}

// do sends the request and decodes a good answer into out.
func (c call) do(ctx context.Context, out any) error {
	body, err := c.raw(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return event.Errorf(event.Internal, "the answer of %s for %s is not JSON as expected", c.provider, c.what) // the cause may quote a value
	}
	return nil
}

// raw sends the request and returns the body of a good answer.
func (c call) raw(ctx context.Context) ([]byte, error) {
	limit := c.time
	if limit == 0 {
		limit = callTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := c.client.Do(c.request.WithContext(ctx))
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.unreachable(err)
	case resp.StatusCode >= 300:
		return nil, c.refused(resp.StatusCode, body)
	case len(body) > maxAnswer:
		return nil, event.Errorf(event.Limit, "the answer of %s for %s is larger than %d bytes", c.provider, c.what, maxAnswer)
	}
	return body, nil
}

func (c call) unreachable(err error) error {
	if errors.Is(err, egress.ErrDenied) {
		return &event.Error{
			Code: event.Forbidden, Message: c.provider + " may not be connected to for " + c.what, Reason: "egress_denied",
			Remedy: "allow the host in the egress settings of the server",
		}
	}
	return &event.Error{
		Code: event.Unavailable, Message: c.provider + " did not answer for " + c.what + ": " + reason(err), Remedy: "try again",
		Reason: "provider_unreachable",
	}
}

// refused makes an error of a bad answer. Bodies stay out of it: services echo
// what they were sent.
func (c call) refused(status int, body []byte) error {
	code := event.Code("")
	if c.explain != nil {
		code = c.explain(status, body)
	}
	if code == "" {
		code = codeOf(status)
	}
	e := &event.Error{Code: code, Message: c.provider + " refused " + c.what + " with status " + strconv.Itoa(status)}
	switch code {
	case event.NotFound:
		e.Message, e.Reason = c.provider+" has no "+c.what, "secret_not_found"
	case event.Forbidden:
		e.Reason, e.Remedy = "provider_denied", "check the permissions of the identity that the server uses"
	case event.Unavailable:
		e.Reason, e.Remedy = "provider_unavailable", "try again"
	default:
		e.Reason = "provider_refused"
	}
	return e
}

func codeOf(status int) event.Code {
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return event.NotFound
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return event.Forbidden
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500:
		return event.Unavailable
	}
	return event.Invalid
}

// reason says why something failed, without the address and what else an error
// carries along.
func reason(err error) string {
	var path *os.PathError
	switch {
	case errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err):
		return "it took too long"
	case errors.Is(err, context.Canceled):
		return "the request was given up"
	case errors.As(err, &path):
		return path.Err.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return "no address for " + dns.Name
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Op + ": " + op.Err.Error()
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return "its certificate is signed by an unknown authority"
	}
	return "the connection failed"
}

func noSecret(provider, ref, why string) error {
	return &event.Error{Code: event.NotFound, Message: provider + " has no secret for " + quote(ref) + ": " + why, Reason: "secret_not_found"}
}

func badRef(provider, ref, why string) error {
	return &event.Error{Code: event.Invalid, Message: "reference " + quote(ref) + " of provider " + provider + ": " + why, Reason: "bad_reference"}
}

func missing(provider, what, remedy string) error {
	return &event.Error{Code: event.Invalid, Message: "provider " + provider + " has " + what, Remedy: remedy, Reason: "provider_not_configured"}
}

func quote(s string) string { return strconv.Quote(s) }
