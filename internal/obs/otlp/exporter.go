package otlp

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/noetl/noetl-go/internal/obs"
)

const (
	// sendTime bounds how long one batch is tried, repetitions included.
	sendTime = 10 * time.Second
	// flushTime bounds what the end of the process waits for a collector.
	flushTime = 5 * time.Second
	// textMost bounds an attribute, because messages of tools may be long.
	textMost = 2048
)

// Exporter makes a tracer whose spans go to a collector.
type Exporter struct {
	Tracer *obs.Tracer

	provider *sdktrace.TracerProvider
	queue    *queue
}

// Open starts sending. Settings that make no sense are refused; a collector
// that does not answer is not, it may come back.
func Open(ctx context.Context, s Settings, log *slog.Logger) (*Exporter, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	target, err := s.url()
	if err != nil {
		return nil, err
	}
	headers, err := pairs("OTEL_EXPORTER_OTLP_HEADERS", s.Headers)
	if err != nil {
		return nil, err
	}
	head := make(map[string]string, len(headers))
	for _, h := range headers {
		head[h.name] = h.value
	}
	how := []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(target), otlptracehttp.WithHeaders(head),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: 250 * time.Millisecond, MaxInterval: 2 * time.Second, MaxElapsedTime: sendTime}),
	}
	if s.Compression == "" || s.Compression == "gzip" {
		how = append(how, otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	} else {
		how = append(how, otlptracehttp.WithCompression(otlptracehttp.NoCompression))
	}
	wire, err := otlptracehttp.New(ctx, how...)
	if err != nil {
		return nil, err
	}
	return open(s, wire, log)
}

// open sends through any exporter.
func open(s Settings, wire sdktrace.SpanExporter, log *slog.Logger) (*Exporter, error) {
	sampler, err := s.sampler()
	if err != nil {
		return nil, err
	}
	about, err := s.resource()
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = textMost
	q := newQueue(wire, log)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(q), sdktrace.WithSampler(sampler), sdktrace.WithIDGenerator(obs.IDs{}),
		sdktrace.WithResource(about), sdktrace.WithRawSpanLimits(limits),
	)
	return &Exporter{Tracer: obs.NewTracer(provider), provider: provider, queue: q}, nil
}

// resource describes this process. What is said of it wins over what is known.
func (s Settings) resource() (*resource.Resource, error) {
	given, err := pairs("OTEL_RESOURCE_ATTRIBUTES", s.Resource)
	if err != nil {
		return nil, err
	}
	attrs := []attribute.KeyValue{
		attribute.String("service.name", s.Part), attribute.String("service.version", s.Version),
		attribute.String("telemetry.sdk.language", "go"), attribute.String("telemetry.sdk.name", "opentelemetry"),
	}
	for _, p := range given {
		attrs = append(attrs, attribute.String(p.name, p.value))
	}
	if s.ServiceName != "" {
		attrs = append(attrs, attribute.String("service.name", s.ServiceName))
	}
	return resource.NewSchemaless(attrs...), nil
}

// Count shows in a registry what becomes of the spans.
func (e *Exporter) Count(r *obs.Registry) { e.queue.count(r) }

// Close sends what waits, for a few seconds at most, and ends.
func (e *Exporter) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	_ = e.provider.Shutdown(ctx) // what could not be sent is counted and logged
	return nil
}
