package node

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// TLS are the files a server shows itself with and knows its clients by. All
// empty means plain HTTP.
type TLS struct {
	Cert, Key string
	ClientCA  string // who issues certificates of clients; "" = none are asked for
}

func (t TLS) used() bool { return t != TLS{} }

// Check refuses half a configuration and files that cannot be read.
func (t TLS) Check() error {
	switch {
	case !t.used():
		return nil
	case t.Cert == "" || t.Key == "":
		return fmt.Errorf("TLS needs a certificate and its key: set both NOETL_TLS_CERT and NOETL_TLS_KEY")
	}
	_, err := t.load()
	return err
}

// load reads the files as they are now.
func (t TLS) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the server (NOETL_TLS_CERT, NOETL_TLS_KEY): %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if t.ClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read who issues certificates of clients (NOETL_TLS_CLIENT_CA): %w", err)
	}
	if c.ClientCAs = x509.NewCertPool(); !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s (NOETL_TLS_CLIENT_CA) holds no certificate in PEM", t.ClientCA)
	}
	// Callers may also have a token; one without any is refused by its route.
	c.ClientAuth = tls.VerifyClientCertIfGiven
	return c, nil
}

// listener puts TLS in front of ln. Files that change are read again, so that
// certificates are renewed without a restart.
func (t TLS) listener(ln net.Listener, log *slog.Logger) (net.Listener, error) {
	if !t.used() {
		return ln, nil
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	c, err := t.load()
	if err != nil {
		return nil, err
	}
	f := &freshTLS{files: t, current: c, seen: t.stamp(), looked: time.Now(), log: log}
	return tls.NewListener(ln, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: c.NextProtos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.config(time.Now()), nil },
	}), nil
}

// lookEvery is how often the files are looked at, at most.
const lookEvery = time.Second

// freshTLS is a configuration that follows its files.
type freshTLS struct {
	files TLS
	log   *slog.Logger

	mu      sync.Mutex // guards what follows
	current *tls.Config
	seen    string
	looked  time.Time
}

// config is the configuration of now. While the files are being replaced they
// may not fit each other: then the former one stays.
func (f *freshTLS) config(now time.Time) *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.looked) < lookEvery {
		return f.current
	}
	f.looked = now
	stamp := f.files.stamp()
	if stamp == f.seen {
		return f.current
	}
	c, err := f.files.load()
	if err != nil {
		f.log.Warn("the new certificate cannot be used yet", "error", err)
		return f.current
	}
	f.current, f.seen = c, stamp
	f.log.Info("the certificate was read again")
	return c
}

// stamp changes when one of the files does.
func (t TLS) stamp() string {
	var all string
	for _, name := range []string{t.Cert, t.Key, t.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			all += fmt.Sprintf("%d/%d;", info.ModTime().UnixNano(), info.Size())
		} else {
			all += "-;"
		}
	}
	return all
}
