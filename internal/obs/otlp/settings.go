// Package otlp sends spans to an OpenTelemetry collector over HTTP. It is apart
// from obs because the protocol brings a large library along, which only the
// program needs. It must not know what the spans are about.
package otlp

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/noetl/noetl-go/internal/event"
)

// Settings are those of the OpenTelemetry specification, as they were written.
type Settings struct {
	Endpoint       string // of a collector, to which /v1/traces is added
	TracesEndpoint string // the very URL that takes traces; wins over Endpoint
	Headers        string // name=value pairs with commas between them, percent-encoded
	Protocol       string // "" or http/protobuf
	Compression    string // "" or gzip, or none
	Part           string // the service's name unless one is given
	ServiceName    string
	Resource       string // name=value pairs that describe the process
	Sampler        string // "" = parentbased_always_on
	SamplerArg     string
	Disabled       bool
	Version        string // of this program
}

// On tells whether spans are to be sent.
func (s Settings) On() bool { return !s.Disabled && (s.Endpoint != "" || s.TracesEndpoint != "") }

// protocol is the one that is spoken here.
const protocol = "http/protobuf"

// url is where traces go.
func (s Settings) url() (string, error) {
	name, text := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.TracesEndpoint
	if text == "" {
		name, text = "OTEL_EXPORTER_OTLP_ENDPOINT", s.Endpoint
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", event.Errorf(event.Invalid, "%s is not a URL of a collector: give one such as http://localhost:4318", name)
	}
	if s.TracesEndpoint == "" {
		u = u.JoinPath("v1", "traces")
	} else if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), nil
}

// check refuses what would be misunderstood later, when nobody looks.
func (s Settings) check() error {
	if s.Protocol != "" && s.Protocol != protocol {
		return event.Errorf(event.Invalid, "OTEL_EXPORTER_OTLP_PROTOCOL %q is not spoken here: use %s and the collector's HTTP port, which is usually 4318", s.Protocol, protocol)
	}
	if !slices.Contains([]string{"", "gzip", "none"}, s.Compression) {
		return event.Errorf(event.Invalid, "OTEL_EXPORTER_OTLP_COMPRESSION %q: want gzip or none", s.Compression)
	}
	if _, err := pairs("OTEL_EXPORTER_OTLP_HEADERS", s.Headers); err != nil {
		return err
	}
	if _, err := pairs("OTEL_RESOURCE_ATTRIBUTES", s.Resource); err != nil {
		return err
	}
	if _, err := s.sampler(); err != nil {
		return err
	}
	_, err := s.url()
	return err
}

// pair is one setting of a list, in the order it was written.
type pair struct{ name, value string }

// pairs reads name=value,name=value. Values may hold secrets and are not shown.
func pairs(setting, text string) ([]pair, error) {
	var list []pair
	for i, part := range strings.Split(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil {
			return nil, event.Errorf(event.Invalid, "%s: part %d is not name=value; separate pairs with commas and write special characters as %%XX", setting, i+1)
		}
		list = append(list, pair{name, value})
	}
	return list, nil
}

// samplers are the names that can be given.
var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}

// sampler decides which traces are kept. One that begins with parentbased
// leaves the decision to the caller, where there is one.
func (s Settings) sampler() (sdktrace.Sampler, error) {
	name := strings.ToLower(strings.TrimSpace(s.Sampler))
	if name == "" {
		name = "parentbased_always_on"
	}
	if !slices.Contains(samplers, name) {
		return nil, event.Errorf(event.Invalid, "OTEL_TRACES_SAMPLER %q: want one of %s", s.Sampler, strings.Join(samplers, ", "))
	}
	kind, parentBased := strings.CutPrefix(name, "parentbased_")
	var root sdktrace.Sampler
	switch kind {
	case "always_on":
		root = sdktrace.AlwaysSample()
	case "always_off":
		root = sdktrace.NeverSample()
	default:
		ratio := 1.0
		if s.SamplerArg != "" {
			var err error
			if ratio, err = strconv.ParseFloat(strings.TrimSpace(s.SamplerArg), 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				return nil, event.Errorf(event.Invalid, "OTEL_TRACES_SAMPLER_ARG %q: want the share of traces to keep, a number from 0 to 1", s.SamplerArg)
			}
		}
		root = sdktrace.TraceIDRatioBased(ratio)
	}
	if parentBased {
		return sdktrace.ParentBased(root), nil
	}
	return root, nil
}
