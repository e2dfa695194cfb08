package obs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/obs"
)

func TestPasswordsOfAddressesAreNotLogged(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	address := &url.URL{Scheme: "nats", User: url.UserPassword("me", secret), Host: "broker:4222"}
	for name, log := range map[string]func(l *slog.Logger){
		"in the message":   func(l *slog.Logger) { l.Warn("cannot reach postgres://me:" + secret + "@db/noetl") },
		"in a text":        func(l *slog.Logger) { l.Warn("m", "url", "https://me:"+secret+"@host/path?x=1") },
		"an at sign in it": func(l *slog.Logger) { l.Warn("m", "url", "https://me:a@b"+secret+"@host/path") },
		"only a token":     func(l *slog.Logger) { l.Warn("m", "url", "nats://"+secret+"@host:4222") },
		"in a wrapped error": func(l *slog.Logger) {
			l.Error("m", "error", fmt.Errorf("start: %w", errors.New(`dial "nats://me:`+secret+`@host": refused`)))
		},
		"in an address":           func(l *slog.Logger) { l.Info("m", "server", address) },
		"in a list":               func(l *slog.Logger) { l.Info("m", "servers", []string{"a", address.String()}) },
		"in a group":              func(l *slog.Logger) { l.Info("m", slog.Group("to", "url", address.String())) },
		"given before":            func(l *slog.Logger) { l.With("url", address.String()).Info("m") },
		"given before in a group": func(l *slog.Logger) { l.WithGroup("g").With("url", address.String()).Info("m") },
		"among words": func(l *slog.Logger) {
			l.Info("m", "dsn", "host=db user=me password='it\\'s "+secret+"' dbname=x password="+secret)
		},
		"in a query": func(l *slog.Logger) { l.Info("m", "dsn", "postgres://db/x?user=me&password="+secret+"&sslmode=off") },
	} {
		for kind, handler := range map[string]func(b *bytes.Buffer) slog.Handler{
			"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var b bytes.Buffer
			log(slog.New(obs.LogHandler(handler(&b))))
			if strings.Contains(b.String(), secret) || !strings.Contains(b.String(), "***") {
				t.Errorf("%s, as %s: %s", name, kind, b.String())
			}
		}
	}
}

func TestWhatIsNoSecretIsLoggedAsItIs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	var none *url.URL
	slog.New(obs.LogHandler(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))).Info("see https://host/path@2 and me@example.com", "n", 3, "url", "http://host:1/x?y=a@b", "none", none, "error", errors.New("no such host"))
	want := `level=INFO msg="see https://host/path@2 and me@example.com" n=3 url="http://host:1/x?y=a@b" none=<nil> error="no such host"` + "\n"
	if b.String() != want {
		t.Errorf("logged %s want %s", b.String(), want)
	}
}
