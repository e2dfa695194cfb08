package nats

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// mendPause is the least time between two attempts to mend the embedded server.
const mendPause = 5 * time.Second

// mender brings JetStream of the embedded server back after its disk failed,
// say because it was full: until it is started anew the server takes no message
// for a stream that once could not be written.
type mender struct {
	server *server.Server // nil when the broker is elsewhere, which others tend
	config server.JetStreamConfig

	mu      sync.Mutex // guards what follows
	refused int        // publications in a row that were not taken
	last    time.Time  // when it was mended
}

func newMender(s *server.Server) *mender {
	m := &mender{server: s}
	if s != nil {
		if c := s.JetStreamConfig(); c != nil {
			m.config = *c
			// The server puts a directory of its own below the one it is given.
			m.config.StoreDir = filepath.Dir(c.StoreDir)
		}
	}
	return m
}

// ailing notes the outcome of a publication. When a second one in a row was not
// taken although the broker answers, JetStream is started anew.
func (b *Bus) ailing(err error) {
	m := b.mender
	if m.server == nil || errors.Is(err, context.Canceled) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.refused = 0
		return
	}
	m.refused++
	if m.refused > 1 && b.Connected() && time.Since(m.last) >= mendPause {
		m.last = time.Now()
		b.restartJetStream()
	}
}

func (b *Bus) restartJetStream() {
	m, log := b.mender, b.options.Logger
	if err := m.server.ShutdownJetStream(); err != nil {
		log.Warn("embedded NATS cannot be stopped to be mended", "error", err)
		return
	}
	config := m.config
	if err := m.server.EnableJetStream(&config); err != nil {
		log.Warn("embedded NATS is not back yet; notifications wait", "error", err)
		return
	}
	log.Info("embedded NATS was started anew because it took no messages")
	b.eachSubscription((*subscription).reset)
}
