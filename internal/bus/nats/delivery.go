package nats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/noetl/noetl-go/internal/event"
)

// The words of the acknowledgement protocol.
var (
	ack        = []byte("+ACK")
	inProgress = []byte("+WPI")
	term       = []byte("+TERM")
)

func nak(delay time.Duration) []byte {
	if delay <= 0 {
		return []byte("-NAK")
	}
	return fmt.Appendf(nil, `-NAK {"delay": %d}`, delay.Nanoseconds())
}

// delivery is one message until it is settled.
type delivery struct {
	s       *subscription
	reply   string
	note    event.Notification
	arrived time.Time
}

// newDelivery reads a message. On error the delivery can only be terminated.
func newDelivery(s *subscription, m *nats.Msg) (*delivery, error) {
	d := &delivery{s: s, reply: m.Reply, arrived: time.Now()}
	wire := struct {
		*event.Notification
		CommandID looseString `json:"command_id"`
	}{Notification: &d.note}
	if err := json.Unmarshal(m.Data, &wire); err != nil {
		return d, fmt.Errorf("decode notification: %w", err)
	}
	d.note.CommandID = string(wire.CommandID)
	return d, nil
}

// looseString is a string that other publishers also write as a number.
type looseString string

func (s *looseString) UnmarshalJSON(b []byte) error {
	if !bytes.HasPrefix(b, []byte(`"`)) {
		*s = looseString(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(s))
}

func (d *delivery) Notification() event.Notification { return d.note }

func (d *delivery) Ack() error { return d.settle(ack) }

func (d *delivery) Nak(delay time.Duration) error { return d.settle(nak(delay)) }

func (d *delivery) InProgress() error { return d.send(inProgress) }

// settle sends the final word. A second one, or one after the subscription was
// stopped, is a conflict.
func (d *delivery) settle(word []byte) error {
	if !d.s.settled(d) {
		return event.Errorf(event.Conflict, "the delivery of command %s is settled already", d.note.CommandID)
	}
	return d.send(word)
}

func (d *delivery) send(word []byte) error {
	if err := d.s.bus.conn.Publish(d.reply, word); err != nil {
		return d.s.bus.unavailable("settle delivery of command "+d.note.CommandID, err)
	}
	return nil
}
