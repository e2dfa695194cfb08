// Command otelcol is the OpenTelemetry project's own receiver of OTLP, for
// tests: it takes traces as a collector does and sends them on, so that what
// the test sees has passed the official code. It is a module of its own because
// the collector brings a great many libraries along.
//
//	otelcol LISTEN FORWARD
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "otelcol:", err)
		os.Exit(1)
	}
}

func run(listen, forward string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	given := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": listen}}})
	if err := given.Unmarshal(config); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	sink, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error { return send(ctx, forward, td) })
	if err != nil {
		return err
	}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	r, err := factory.CreateTraces(ctx, settings, config, sink)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := r.Start(ctx, componenttest.NewNopHost()); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	fmt.Println("otelcol: listening on " + listen)
	<-ctx.Done()
	return r.Shutdown(context.Background())
}

// send passes what was received on.
func send(ctx context.Context, to string, td ptrace.Traces) error {
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
