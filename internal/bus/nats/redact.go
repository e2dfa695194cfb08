package nats

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// checkURLs refuses a URL that cannot be read. Its message does not repeat the
// text, which may hold a password.
func checkURLs(urls string) error {
	for raw := range strings.SplitSeq(urls, ",") {
		u, err := parseURL(raw)
		if err != nil || u.Host == "" {
			return &event.Error{
				Code:    event.Invalid,
				Message: "the NATS URL is not readable",
				Remedy:  "write it as nats://host:4222 and percent-encode special characters in the password",
			}
		}
	}
	return nil
}

func parseURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if !strings.Contains(raw, "://") {
		raw = "nats://" + raw
	}
	return url.Parse(raw)
}

// redact is urls without user information, for messages.
func redact(urls string) string {
	var shown []string
	for raw := range strings.SplitSeq(urls, ",") {
		u, err := parseURL(raw)
		if err != nil {
			shown = append(shown, "(unreadable URL)")
			continue
		}
		u.User = nil
		shown = append(shown, u.String())
	}
	return strings.Join(shown, ",")
}

// scrub is the text of err without the secrets this bus was opened with.
func (b *Bus) scrub(err error) string {
	text := err.Error()
	hide := func(secret string) {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	hide(b.options.Password)
	hide(b.options.Token)
	for raw := range strings.SplitSeq(b.options.URL, ",") {
		u, err := parseURL(raw)
		if err != nil || u.User == nil {
			continue
		}
		if password, ok := u.User.Password(); ok {
			hide(u.User.String()) // as written in the URL
			hide(password)
		} else {
			hide(u.User.Username()) // a lone user name is a token
		}
	}
	return text
}

// unavailable is the coded error of a call the broker did not answer as hoped.
// The cause is kept as text only, so that no wrapper can show its secrets; the
// end of a context has none.
func (b *Bus) unavailable(what string, err error) error {
	e := &event.Error{
		Code:    event.Unavailable,
		Message: what + ": " + b.scrub(err),
		Remedy:  "check that NATS runs and is reachable from here",
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e.Err = err
	}
	return e
}
