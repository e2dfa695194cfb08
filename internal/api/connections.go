package api

import (
	"net"
	"sync"
)

// boundedListener admits only so many connections of one address at a time, so
// that one slow or hostile caller cannot take them all.
type boundedListener struct {
	net.Listener
	most int

	mu   sync.Mutex // guards open
	open map[string]int
}

// Bounded is ln with at most so many open connections of one address; 0 does not
// bound them.
func Bounded(ln net.Listener, most int) net.Listener {
	if most <= 0 {
		return ln
	}
	return &boundedListener{Listener: ln, most: most, open: map[string]int{}}
}

// Accept closes what is too much and waits for the next connection.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			return c, nil
		}
		if l.take(host) {
			return &boundedConn{Conn: c, end: sync.OnceFunc(func() { l.give(host) })}, nil
		}
		_ = c.Close()
	}
}

func (l *boundedListener) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host] >= l.most {
		return false
	}
	l.open[host]++
	return true
}

func (l *boundedListener) give(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host]--; l.open[host] <= 0 {
		delete(l.open, host)
	}
}

type boundedConn struct {
	net.Conn
	end func()
}

func (c *boundedConn) Close() error {
	c.end()
	return c.Conn.Close()
}
