package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"

	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/obs/otlp"
)

// traceFlags say where spans are sent, in the words of OpenTelemetry. Without an
// endpoint none are made.
type traceFlags struct {
	OTLPEndpoint       string `name:"otlp-endpoint" help:"OpenTelemetry collector that takes traces over HTTP, such as http://localhost:4318. Default: no traces." env:"OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL"`
	OTLPTracesEndpoint string `name:"otlp-traces-endpoint" help:"The very URL that takes traces, instead." env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" placeholder:"URL"`
	OTLPHeaders        string `name:"otlp-headers" hidden:"" env:"OTEL_EXPORTER_OTLP_TRACES_HEADERS,OTEL_EXPORTER_OTLP_HEADERS"`
	OTLPProtocol       string `name:"otlp-protocol" hidden:"" env:"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,OTEL_EXPORTER_OTLP_PROTOCOL"`
	OTLPCompression    string `name:"otlp-compression" hidden:"" env:"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION,OTEL_EXPORTER_OTLP_COMPRESSION"`
	TraceServiceName   string `name:"otel-service-name" hidden:"" env:"OTEL_SERVICE_NAME"`
	TraceResource      string `name:"otel-resource-attributes" hidden:"" env:"OTEL_RESOURCE_ATTRIBUTES"`
	TraceSampler       string `name:"otel-traces-sampler" hidden:"" env:"OTEL_TRACES_SAMPLER"`
	TraceSamplerArg    string `name:"otel-traces-sampler-arg" hidden:"" env:"OTEL_TRACES_SAMPLER_ARG"`
	TraceExporter      string `name:"otel-traces-exporter" hidden:"" env:"OTEL_TRACES_EXPORTER"`
	TraceSDKDisabled   string `name:"otel-sdk-disabled" hidden:"" env:"OTEL_SDK_DISABLED"`
}

// open starts sending spans; part is what this process calls itself unless it
// is told otherwise.
func (f traceFlags) open(ctx context.Context, part string, log *slog.Logger) (node.Tracing, error) {
	s := otlp.Settings{
		Endpoint: f.OTLPEndpoint, TracesEndpoint: f.OTLPTracesEndpoint, Headers: f.OTLPHeaders, Protocol: f.OTLPProtocol,
		Compression: f.OTLPCompression, ServiceName: f.TraceServiceName, Resource: f.TraceResource, Part: part,
		Sampler: f.TraceSampler, SamplerArg: f.TraceSamplerArg, Version: Version,
	}
	switch f.TraceSDKDisabled {
	case "", "false":
	case "true":
		s.Disabled = true
	default:
		return node.Tracing{}, invalidf("OTEL_SDK_DISABLED %q: want true or false", f.TraceSDKDisabled)
	}
	switch f.TraceExporter {
	case "", "otlp":
	case "none":
		s.Disabled = true
	default:
		return node.Tracing{}, invalidf("OTEL_TRACES_EXPORTER %q: want otlp or none", f.TraceExporter)
	}
	if !s.On() {
		return node.Tracing{}, nil
	}
	e, err := otlp.Open(ctx, s, log)
	if err != nil {
		return node.Tracing{}, err
	}
	return node.Tracing{Tracer: e.Tracer, Count: e.Count, Close: e.Close}, nil
}

// callersTrace is the trace of whoever started this program, as it is handed
// down in the environment; nil when there is none.
func callersTrace() json.RawMessage {
	return obs.Retrace(nil, obs.ParseTraceparent(os.Getenv("TRACEPARENT"), os.Getenv("TRACESTATE")))
}
