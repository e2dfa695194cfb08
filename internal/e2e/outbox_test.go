package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

const threeSteps = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: three, path: e2e/three}
workflow:
  - {step: start, tool: {kind: noop}, next: {arcs: [{step: middle}]}}
  - {step: middle, loop: {in: [1, 2, 3], iterator: i, spec: {mode: parallel}}, tool: {kind: noop}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop}}
`

// internal calls an internal route and returns the answer.
func (s *system) internal(p *process, method, path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.ctx(), method, p.url+"/api/internal/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+internalToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// followed reads the stream of events: how far each execution has come, with
// every event once and in order.
func (s *system) followed(url string) map[event.ID]int64 {
	s.t.Helper()
	conn, err := natsgo.Connect(url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		s.t.Fatal(err)
	}
	stream, err := js.Stream(s.ctx(), "noetl_events")
	if err != nil {
		s.t.Fatal(err)
	}
	last := map[event.ID]int64{}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(s.ctx(), seq)
		if err != nil {
			s.t.Fatal(err)
		}
		var e struct {
			ExecutionID event.ID `json:"execution_id"`
			Seq         int64    `json:"seq"`
		}
		if err := json.Unmarshal(m.Data, &e); err != nil {
			s.t.Fatal(err)
		}
		if e.Seq != last[e.ExecutionID]+1 {
			s.t.Fatalf("execution %s: event %d came after event %d", e.ExecutionID, e.Seq, last[e.ExecutionID])
		}
		last[e.ExecutionID] = e.Seq
	}
	return last
}

func TestEveryEventReachesTheStreamThoughTheServerIsKilled(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		url, args := s.natsFor()
		args = append(args, "--outbox-publisher", "internal")
		first := s.serverWith(tokenEnv, 0, args...)
		var ids []event.ID
		for range 20 {
			ids = append(ids, s.start(first, threeSteps))
		}
		first.Kill()
		second := s.serverWith(tokenEnv, 0, args...)
		for range 5 {
			ids = append(ids, s.start(second, threeSteps))
		}
		want := map[event.ID]int64{}
		for _, id := range ids {
			s.ended(second, id, event.StatusCompleted)
			log := s.log(second, id)
			want[id] = log[len(log)-1].Seq
		}
		// What the killed server had claimed is free after a minute.
		testkit.Eventually(t, func() error {
			got := s.followed(url)
			for id, seq := range want {
				if got[id] != seq {
					return fmt.Errorf("execution %s: %d of %d events arrived", id, got[id], seq)
				}
			}
			return nil
		}, 2*patience)
		if status, body := s.internal(second, http.MethodGet, "outbox/pending-count", ""); status != 200 || body != "{\"pending\":0}\n" {
			t.Errorf("pending-count answers %d %s", status, body)
		}
		s.stop(second)
	})
}
