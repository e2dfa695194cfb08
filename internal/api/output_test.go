package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func printing(t *testing.T) (*apitest.Plane, *membus.Bus, *httptest.Server) {
	t.Helper()
	p, b := started(5), membus.New(membus.Options{})
	t.Cleanup(func() { _ = b.Close() })
	return p, b, newServer(t, p, func(o *api.Options) { o.Logs = b })
}

func prints(t *testing.T, b *membus.Bus, step string, n int) {
	t.Helper()
	err := b.PublishLog(t.Context(), event.LogChunk{
		ExecutionID: 5, EventID: event.ID(len(step)), CommandID: "5:" + step, Step: step, Attempt: 1,
		Time: time.Unix(1_700_000_000, 0).UTC(), Text: fmt.Sprintf("%s %d\n", step, n),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func ends(p *apitest.Plane) {
	p.Append(5, event.Event{Type: event.PlaybookCompleted, Status: event.StatusCompleted})
	p.Put(store.Execution{ExecutionID: 5, Status: event.StatusCompleted}, `{}`)
}

func fetch(t *testing.T, srv *httptest.Server, path, accept string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	return do(t, srv, req).body
}

func TestOutputIsListedAndResumed(t *testing.T) {
	t.Parallel()
	_, b, srv := printing(t)
	for n := range 4 {
		prints(t, b, []string{"one", "seven"}[n%2], n)
	}
	if got := fetch(t, srv, "/api/executions/5/logs", "text/plain"); got != "one 0\nseven 1\none 2\nseven 3\n" {
		t.Errorf("text %q", got)
	}
	if got := fetch(t, srv, "/api/executions/5/logs?step=seven&after=2", "text/plain"); got != "seven 3\n" {
		t.Errorf("text %q", got)
	}
	want := `{"execution_id":"5","chunks":[{"seq":4,"time":"2023-11-14T22:13:20Z","step":"seven","command_id":"5:seven","event_id":"5","attempt":1,"text":"seven 3\n"}],"truncated":false,"after":4}`
	if got := fetch(t, srv, "/api/executions/5/logs?after=3", "*/*"); strings.TrimSpace(got) != want {
		t.Errorf("list %s", got)
	}
}

func TestOutputIsFollowedToTheEndOfTheExecution(t *testing.T) {
	t.Parallel()
	p, b, srv := printing(t)
	prints(t, b, "one", 0)
	lines, stop := follow(t, srv, "/api/executions/5/logs?follow=true", "")
	defer stop()
	for l := range lines {
		if strings.HasPrefix(l, "data: ") {
			break
		}
	}
	prints(t, b, "one", 1)
	ends(p)
	prints(t, b, "one", 2) // it was on its way
	list, ended := ids(lines)
	if diff := cmp.Diff([]string{"2", "3"}, list); diff != "" || !ended {
		t.Errorf("ended %t %s", ended, diff)
	}
}

// TestAFollowerThatIsDroppedGoesOn cuts every connection in the middle.
func TestAFollowerThatIsDroppedGoesOn(t *testing.T) {
	t.Parallel()
	p, b, srv := printing(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), r.Method, srv.URL+r.URL.RequestURI(), nil)
		if err != nil {
			panic(err)
		}
		req.Header = r.Header
		resp, err := srv.Client().Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		rc, buf := http.NewResponseController(w), make([]byte, 300)
		for range 4 { // then the connection is gone, perhaps within a frame
			n, err := resp.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			_ = rc.Flush()
			if err != nil {
				return
			}
		}
	}))
	defer proxy.Close()
	cl, err := client.New(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	const total = 40
	for n := range 20 {
		prints(t, b, "one", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got []string
	err = cl.FollowLogs(ctx, 5, "", func(c client.LogChunk) error {
		got = append(got, c.Text)
		if len(got) == 10 {
			for n := 20; n < total; n++ {
				prints(t, b, "one", n)
			}
			ends(p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for n := range total {
		want = append(want, fmt.Sprintf("one %d\n", n))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOutputWhoseChunksAreGoneComesFromTheEvents(t *testing.T) {
	t.Parallel()
	p, b, srv := printing(t)
	end := func(id event.ID, step, result string) {
		p.Append(5, event.Event{
			Type: event.CommandCompleted, ParentEventID: id, CommandID: "5:" + step, NodeName: step, Status: event.StatusCompleted,
			Result: json.RawMessage(`{"status":"COMPLETED","context":{"result":{"status":"success","context":` + result + `}}}`),
		})
	}
	end(70, "tailed", `{"logs":{"ref":"noetl://gone","bytes":105,"lines":9,"tail":"tail\n"}}`)
	end(71, "little", `{"data":1,"stdout":"hello\n"}`)
	end(72, "silent", `{"data":1}`)
	end(3, "one", `{"logs":{"bytes":6,"lines":1,"tail":"one 0\n"}}`) // its chunks are still there
	prints(t, b, "one", 0)
	ends(p)
	want := "… 100 bytes dropped …\ntail\nhello\none 0\n"
	if got := fetch(t, srv, "/api/executions/5/logs", "text/plain"); got != want {
		t.Errorf("text %q", got)
	}
	cl, err := client.New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var text strings.Builder
	if err := cl.FollowLogs(t.Context(), 5, "little", func(c client.LogChunk) error { text.WriteString(c.Text); return nil }); err != nil || text.String() != "hello\n" {
		t.Errorf("followed %q, %v", text.String(), err)
	}
}

func TestAReaderOfOutputCanStop(t *testing.T) {
	t.Parallel()
	_, b, srv := printing(t)
	prints(t, b, "one", 0)
	cl, err := client.New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	enough := errors.New("enough")
	if err := cl.FollowLogs(t.Context(), 5, "", func(client.LogChunk) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("following ended with %v", err)
	}
	if err := cl.Logs(t.Context(), 9, "", nil); event.CodeOf(err) != event.NotFound {
		t.Errorf("an unknown execution: %v", err)
	}
}
