package control_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func external(o *control.Options) { o.Outbox.On = true }

func TestAFailedRowWaitsLongerWithEachAttempt(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil, external)
		r.register(p, single)
		r.start(p, "test/single")
		batch, err := p.ClaimOutbox(t.Context(), 1)
		if err != nil || len(batch.Rows) != 1 {
			t.Fatalf("claimed %+v, %v", batch, err)
		}
		id := batch.Rows[0].OutboxID
		for _, c := range []struct {
			attempts  int
			most, is  time.Duration
			wasMarked bool
		}{
			{0, 300 * time.Second, 1 * time.Second, true},
			{1, 300 * time.Second, 1 * time.Second, false},
			{2, 300 * time.Second, 2 * time.Second, false},
			{5, 300 * time.Second, 16 * time.Second, false},
			{9, 300 * time.Second, 256 * time.Second, false},
			{20, 300 * time.Second, 256 * time.Second, false},
			{5, 10 * time.Second, 10 * time.Second, false},
			{-7, 300 * time.Second, time.Second, false},
			{5, 0, 0, false},
		} {
			wait, marked, err := p.MarkFailed(t.Context(), control.OutboxFailure{OutboxID: id, Error: "x", Attempts: c.attempts, MaxDelay: c.most})
			if err != nil || wait != c.is || marked != c.wasMarked {
				t.Errorf("attempt %d of at most %v: %v, %t, %v; want %v", c.attempts, c.most, wait, marked, err, c.is)
			}
		}
		if more, err := p.ClaimOutbox(t.Context(), 100); err != nil || len(more.Rows) != 0 {
			t.Errorf("%d rows behind one that waits were claimed, %v", len(more.Rows), err)
		}
		time.Sleep(1200 * time.Millisecond)
		again, err := p.ClaimOutbox(t.Context(), 100)
		if err != nil || len(again.Rows) < 2 || again.Rows[0].OutboxID != id || again.Rows[0].Attempts != 2 {
			t.Errorf("after the wait: %+v, %v", again.Rows, err)
		}
	})
}

func TestMarksThatAreRefused(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newRig(t).plane(nil)
		_, err := p.MarkPublished(t.Context(), "", nil)
		wantCode(t, err, event.BadRequest, "")
		_, _, err = p.MarkFailed(t.Context(), control.OutboxFailure{OutboxID: 1, Error: " \n"})
		wantCode(t, err, event.BadRequest, "")
		_, _, err = p.MarkFailed(t.Context(), control.OutboxFailure{OutboxID: 1, Error: "x", MaxDelay: -1})
		wantCode(t, err, event.Invalid, "")
	})
}

func TestAnEnvelopeHoldsTheEvent(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil, external)
		entry := r.register(p, single)
		id := r.start(p, "test/single")
		batch, err := p.ClaimOutbox(t.Context(), 1)
		if err != nil || len(batch.Rows) != 1 || batch.Token == "" {
			t.Fatalf("claimed %+v, %v", batch, err)
		}
		row := batch.Rows[0]
		if row.Subject != "noetl.events.playbook_started" || row.Codec != "json" || row.Attempts != 1 || row.ExecutionID != id {
			t.Errorf("row %+v", row)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(row.Payload, &fields); err != nil {
			t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(fields))
		for name, want := range map[string]string{
			"event_id": row.EventID.String(), "execution_id": id.String(), "execution_id_str": `"` + id.String() + `"`,
			"catalog_id": entry.CatalogID.String(), "node_id": `"playbook"`, "seq": "1", "parent_event_id": "null",
			"worker_id": "null", "error": "null", "path": `"test/single"`, "event_type": `"playbook_started"`,
		} {
			if string(fields[name]) != want {
				t.Errorf("%s is %s, want %s", name, fields[name], want)
			}
		}
		if in := topKeys(t, row.Payload); !slices.Equal(in, names) {
			t.Errorf("keys %q are not sorted", in)
		}
	})
}

// topKeys are the keys of an object as they are written.
func topKeys(t *testing.T, raw []byte) (keys []string) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func TestALargeEventIsPublishedWithoutItsLargeParts(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil, r.relays)
		r.register(p, single)
		id := r.start(p, "test/single")
		note := strings.Repeat("ü", 700_000)
		answer, err := p.Report(t.Context(), event.Report{ExecutionID: id, WorkerID: "w", Events: []event.Incoming{{
			Step: "start", Type: "my note", Payload: json.RawMessage(`{"error":"` + note + `"}`), Meta: json.RawMessage(`{"m":"` + note[:40_000] + `"}`),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		r.settles([]event.ID{id}, time.Second)
		events := r.bus.Events()
		m := events[len(events)-1]
		if m.Subject != "noetl.events.my_note" || len(m.Payload) > 900<<10 || !utf8.Valid(m.Payload) {
			t.Errorf("%s with %d bytes", m.Subject, len(m.Payload))
		}
		var e struct {
			Truncated bool `json:"truncated"`
			Result    struct {
				Status    string `json:"status"`
				Reference struct {
					Truncated bool   `json:"truncated"`
					Bytes     int    `json:"bytes"`
					URI       string `json:"uri"`
				} `json:"reference"`
			} `json:"result"`
			Meta struct {
				Bytes int `json:"bytes"`
			} `json:"meta"`
		}
		if err := json.Unmarshal(m.Payload, &e); err != nil {
			t.Fatal(err)
		}
		ref := e.Result.Reference
		if !e.Truncated || !ref.Truncated || ref.Bytes < 1_400_000 || e.Result.Status != "RUNNING" || e.Meta.Bytes < 40_000 ||
			!strings.Contains(ref.URI, id.String()) {
			t.Errorf("envelope %+v", e)
		}
		stored, err := r.store.Event(t.Context(), id, answer.EventIDs[0])
		if err != nil || !strings.Contains(string(stored.Result), note) {
			t.Errorf("the log lost what was too large to send: %v", err)
		}
	})
}

func TestASubjectCannotBeBentByAType(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil, r.relays)
		r.register(p, single)
		id := r.start(p, "test/single")
		before := len(r.bus.Events())
		types := map[event.Type]string{
			"a.b": "a.b", "a b\n": "a_b_", "*.>": "_._", "..": "_._._", event.Type(strings.Repeat("x", 500)): strings.Repeat("x", 200), "ä.ß": "ä.ß",
		}
		for kind := range types {
			if _, err := p.Report(t.Context(), event.Report{ExecutionID: id, Events: []event.Incoming{{Step: "start", Type: kind}}}); err != nil {
				t.Fatalf("%q: %v", kind, err)
			}
		}
		r.settles([]event.ID{id}, time.Second)
		var got, want []string
		for _, m := range r.bus.Events()[before:] {
			if !strings.Contains(m.Subject, "command") && !strings.Contains(m.Subject, "playbook") && !strings.Contains(m.Subject, "step") {
				got = append(got, m.Subject)
			}
		}
		for _, tail := range types {
			want = append(want, "noetl.events."+tail)
		}
		slices.Sort(got)
		slices.Sort(want)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("subjects %q, want %q", got, want)
		}
	})
}
