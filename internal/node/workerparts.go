package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/worker"
)

// SpoolOff is the spool directory of a worker that keeps no reports on disk.
const SpoolOff = "off"

// spool opens the directory in which a worker process keeps reports that it
// could not deliver. One that was named must be usable; without a usable
// default the worker goes without, and says so.
func (o WorkerOptions) spool() (*worker.Spool, error) {
	if o.SpoolDir == SpoolOff {
		return nil, nil
	}
	if o.SpoolDir != "" {
		return worker.OpenSpool(o.SpoolDir)
	}
	dir, err := defaultSpool(o.ServerURL)
	if err == nil {
		var s *worker.Spool
		if s, err = worker.OpenSpool(dir); err == nil {
			return s, nil
		}
	}
	o.Logger.Warn("reports that cannot be delivered are not kept: name a directory with NOETL_WORKER_SPOOL_DIR", "error", err)
	return nil, nil
}

// spool is that of a server's own worker, for the time when the database is
// away; a run without a server has no one to come back to.
func (o Options) spool() *worker.Spool {
	if o.Listen == "" || o.DataDir == "" {
		return nil
	}
	s, err := worker.OpenSpool(filepath.Join(o.DataDir, "spool"))
	if err != nil {
		o.Logger.Warn("reports that cannot be stored are not kept for later", "error", err)
		return nil
	}
	return s
}

// defaultSpool is a directory of its own for each server, because a report is
// of no use to another.
func defaultSpool(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:`, r) {
			return '_'
		}
		return r
	}, strings.ToLower(u.Host)+strings.TrimRight(u.Path, "/"))
	if dir := os.Getenv("NOETL_DATA_DIR"); dir != "" {
		return filepath.Join(dir, "spool", name), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "noetl", "spool", name), nil
}

// workerMetrics are those of a worker in a registry, in the words of its tools.
func workerMetrics(r *obs.Registry, tools tool.Set, version string) *obs.WorkerMetrics {
	ends := []event.Type{event.CommandCompleted, event.CommandFailed, event.CommandCancelled, event.CommandParked}
	v := obs.WorkerVocabulary{ToolKinds: slices.Sorted(maps.Keys(tools)), Version: version}
	v.ToolKinds = append(v.ToolKinds, "task_sequence")
	for _, t := range ends {
		v.EventTypes = append(v.EventTypes, string(t))
	}
	return obs.NewWorker(r, v)
}

// meteredResults counts what a worker stores beside the log.
type meteredResults struct {
	pipeline.Results
	metrics *obs.WorkerMetrics
}

// PutResult stores a value.
func (m meteredResults) PutResult(ctx context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error) {
	began := time.Now()
	at, err := m.Results.PutResult(ctx, execution, name, data)
	m.put(began, int64(len(data)), err)
	return at, err
}

// PutBlob stores what r gives.
func (m meteredResults) PutBlob(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error) {
	began, counted := time.Now(), &countingReader{r: r}
	at, err := m.Results.PutBlob(ctx, execution, o, counted)
	m.put(began, counted.n, err)
	return at, err
}

func (m meteredResults) put(began time.Time, size int64, err error) {
	if err != nil {
		m.metrics.ResultPutErrors.Inc()
		return
	}
	m.metrics.ResultPutDuration.Observe(time.Since(began).Seconds())
	m.metrics.ResultPutBytes.Add(float64(size))
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// bootID tells this run of the process from every other of the same name.
func bootID() string { return rand.Text() }

// serveHealth answers at an address until the returned function is called.
func serveHealth(addr string, h http.Handler, log *slog.Logger) (url string, stop func() error, err error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("serve health and metrics on %s: %w (choose another address with --metrics-listen)", addr, err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			log.Error("health and metrics are not served any more", "error", err)
		}
	}()
	return "http://" + ln.Addr().String(), func() error {
		err := srv.Close()
		<-done
		return err
	}, nil
}
