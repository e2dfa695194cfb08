package testapi

import (
	"net/http"
	"strconv"
	"time"
)

// errors fails in the way that was asked for, always.
func (s *Server) errors(c *call) {
	after := c.whole("retry_after", 5)
	kind := c.text("error_type")
	switch kind {
	case "429", "rate_limit":
		c.w.Header().Set("Retry-After", strconv.Itoa(after))
		c.fail(http.StatusTooManyRequests, "Rate limit exceeded")
	case "503":
		c.w.Header().Set("Retry-After", strconv.Itoa(after))
		c.fail(http.StatusServiceUnavailable, "Service unavailable")
	case "timeout":
		c.wait(30 * time.Second)
		c.answer(object{"status": "late"})
	case "auth", "401":
		c.fail(http.StatusUnauthorized, "Unauthorized")
	case "403":
		c.fail(http.StatusForbidden, "Forbidden")
	case "404":
		c.fail(http.StatusNotFound, "Not found")
	default:
		c.fail(http.StatusInternalServerError, "Internal server error")
	}
}

// window counts the calls of one second.
type window struct {
	began time.Time
	calls int
}

// admit counts a call and tells whether it is within the limit.
func (s *Server) admit(name string, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.windows[name]
	if w == nil {
		w = &window{}
		s.windows[name] = w
	}
	if now := time.Now(); now.Sub(w.began) >= time.Second {
		w.began, w.calls = now, 0
	}
	w.calls++
	return limit < 0 || w.calls <= limit
}

func (s *Server) rateLimited(c *call) {
	if !s.admit("rate-limited", c.whole("requests_per_second", 2)) {
		c.w.Header().Set("Retry-After", "1")
		c.fail(http.StatusTooManyRequests, "Rate limit exceeded")
		return
	}
	c.answer(object{"status": "ok"})
}

// limited is a route that shares the rate limit of patients.
func (s *Server) limited(h func(*call)) func(*call) {
	return func(c *call) {
		if !s.admit("patients", s.options.RateLimit) {
			c.w.Header().Set("Retry-After", "1")
			c.fail(http.StatusTooManyRequests, "Rate limit exceeded")
			return
		}
		h(c)
	}
}

// probes measure how many calls overlap.
type probes struct {
	started, completed, active, maxActive int
	recent                                []object      // the last ones
	overlap                               chan struct{} // closed when two are there at once
}

func newProbes() probes { return probes{overlap: make(chan struct{})} }

const recentProbes = 200

func (s *Server) note(event, label string) {
	p := &s.probes
	if len(p.recent) == recentProbes {
		p.recent = p.recent[1:]
	}
	p.recent = append(p.recent, object{"event": event, "label": label, "active": p.active})
}

func (s *Server) probesReset(c *call) {
	s.mu.Lock()
	s.probes = newProbes()
	s.mu.Unlock()
	c.answer(object{"status": "reset"})
}

// meet notes that two probes are there at once.
func (p *probes) meet() {
	select {
	case <-p.overlap:
	default:
		close(p.overlap)
	}
}

func (s *Server) probe(c *call) {
	delay, label := c.number("delay_seconds", 0), c.text("label")
	s.mu.Lock()
	p := &s.probes
	p.started++
	p.active++
	p.maxActive = max(p.maxActive, p.active)
	if p.active > 1 {
		p.meet()
	}
	overlap := p.overlap
	s.note("start", label)
	s.mu.Unlock()
	if delay > 0 {
		c.wait(time.Duration(delay * float64(time.Second)))
	} else {
		c.await(overlap, s.options.Company)
	}
	s.mu.Lock()
	s.probes.active--
	s.probes.completed++
	s.note("end", label)
	s.mu.Unlock()
	c.answer(object{"status": "ok", "label": label, "delay_seconds": delay})
}

func (s *Server) probeStats(c *call) {
	s.mu.Lock()
	p := s.probes
	p.recent = append([]object{}, p.recent...)
	s.mu.Unlock()
	c.answer(object{
		"started": p.started, "completed": p.completed, "active": p.active, "max_active": p.maxActive, "recent_events": p.recent,
	})
}
