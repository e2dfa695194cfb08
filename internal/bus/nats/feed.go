package nats

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 5 * time.Second
	// A request the broker is silent about for so long is taken for lost.
	pullSilence = 3 * pullHeartbeat

	silent = "no heartbeat"

	minBackoff = 50 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// feed pulls the notifications of one pool. It speaks the pull protocol itself
// rather than through the client's iterators, because those either fetch ahead
// of demand or forget messages when a fetch is abandoned.
type feed struct {
	s      *subscription
	pool   string
	sub    *nats.Subscription
	msgs   chan *nats.Msg
	inbox  string
	poke   chan struct{} // demand may have changed
	forgot chan struct{} // the connection was lost; so are requests

	queue []*delivery // guarded by s.mu

	asked   int       // messages requested and not yet received
	heard   time.Time // when the broker last said something about that
	backoff time.Duration
	ill     string // why the consumer is being mended; "" when it is not
}

func newFeed(s *subscription, pool string) (*feed, error) {
	f := &feed{
		s: s, pool: pool, inbox: nats.NewInbox(),
		// Room for all a request may bring, and for the broker's remarks.
		msgs: make(chan *nats.Msg, 2*s.max+64),
		poke: make(chan struct{}, 1), forgot: make(chan struct{}, 1),
	}
	var err error
	f.sub, err = s.bus.conn.ChanSubscribe(f.inbox, f.msgs)
	return f, err
}

// run feeds the subscription until it is stopped.
func (f *feed) run() {
	defer f.finish()
	silence := time.NewTicker(pullHeartbeat)
	defer silence.Stop()
	hold := time.NewTimer(holdTime)
	defer hold.Stop()
	for {
		if err := f.ask(); err != nil && !f.repair(err.Error()) {
			return
		}
		select {
		case <-f.s.done:
			return
		case m := <-f.msgs:
			f.heard = time.Now()
			if trouble := f.receive(m); trouble == "" {
				f.well()
			} else if !f.repair(trouble) {
				return
			}
		case <-f.poke:
		case <-f.forgot:
			f.asked = 0
		case <-silence.C:
			if f.asked > 0 && time.Since(f.heard) > pullSilence && !f.repair(silent) {
				return
			}
		case <-hold.C:
			hold.Reset(f.giveBack())
		}
	}
}

// ask requests as many messages as the subscription can use, unless a request
// is out already.
func (f *feed) ask() error {
	if f.asked > 0 || !f.s.bus.conn.IsConnected() {
		return nil // a reconnect wakes us up
	}
	n := f.s.demand()
	if n <= 0 {
		return nil
	}
	body, err := json.Marshal(map[string]int64{
		"batch": int64(n), "expires": int64(pullExpires), "idle_heartbeat": int64(pullHeartbeat),
	})
	if err != nil {
		return err
	}
	f.asked, f.heard = n, time.Now()
	o := f.s.bus.options
	subject := "$JS.API.CONSUMER.MSG.NEXT." + o.Stream + "." + f.s.bus.consumerName(f.pool)
	return f.s.bus.conn.PublishRequest(subject, f.inbox, body)
}

// receive handles a notification or a remark of the broker about our request.
// It returns what is wrong with the consumer, if anything.
func (f *feed) receive(m *nats.Msg) (trouble string) {
	status, description := m.Header.Get("Status"), m.Header.Get("Description")
	switch {
	case status == "" || len(m.Data) > 0:
		f.accept(m)
		return ""
	case status == "100": // idle heartbeat
		return ""
	case status == "404", status == "408": // the request expired
		f.asked = 0
		return ""
	case status == "409" && strings.EqualFold(description, "Batch Completed"):
		f.asked = 0
		return ""
	}
	return status + " " + description
}

func (f *feed) accept(m *nats.Msg) {
	f.asked = max(f.asked-1, 0)
	f.backoff = 0
	d, err := newDelivery(f.s, m)
	if err != nil {
		f.s.bus.options.Logger.Error("unreadable notification dropped", "subject", m.Subject, "error", err)
		d.send(term)
		return
	}
	f.s.push(f, d)
}

// repair makes sure that stream and consumer exist again, after a pause that
// grows while the trouble lasts. It is false when the subscription has ended.
func (f *feed) repair(trouble string) bool {
	f.asked = 0
	f.backoff = min(max(2*f.backoff, minBackoff), maxBackoff)
	f.ill = rejoinedConsumer
	if trouble == silent {
		f.ill = rejoinedSilence
	}
	f.s.lost(f)
	f.s.bus.options.Logger.Warn("pull from NATS interrupted", "pool", f.pool, "trouble", trouble, "pause", f.backoff)
	pause := time.NewTimer(f.backoff)
	defer pause.Stop()
	select {
	case <-f.s.done:
		return false
	case <-pause.C:
	}
	if !f.s.bus.conn.IsConnected() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	err := f.s.bus.ensureStream(ctx)
	if err == nil {
		err = f.s.bus.ensureConsumer(ctx, f.pool)
	}
	if err == nil {
		err = f.s.bus.ensureLogs(ctx)
	}
	if err != nil {
		f.s.bus.options.Logger.Error("NATS consumer not usable", "pool", f.pool, "error", err)
		return true
	}
	f.well()
	return true
}

// well notes that the consumer is there, if it was thought lost.
func (f *feed) well() {
	if f.ill != "" {
		f.s.found(f, f.ill)
		f.ill = ""
	}
}

// giveBack returns deliveries nobody took, and how long until the next is due.
func (f *feed) giveBack() time.Duration {
	old, next := f.s.stale(f, time.Now())
	for _, d := range old {
		d.send(nak(0))
	}
	if next <= 0 {
		next = holdTime
	}
	return next
}

// finish leaves the consumer group. What the broker sent until it noticed is
// given back at once rather than left to the ack wait.
func (f *feed) finish() {
	if err := f.sub.Drain(); err != nil {
		f.sub.Unsubscribe()
		return
	}
	f.s.bus.conn.FlushTimeout(time.Second)
	for {
		select {
		case m := <-f.msgs:
			if m.Header.Get("Status") == "" {
				f.s.bus.conn.Publish(m.Reply, nak(0))
			}
		default:
			return
		}
	}
}
