package nats

import (
	"context"
	"strings"

	"github.com/noetl/noetl-go/internal/bus"
)

var _ bus.Lagging = (*Bus)(nil)

// Lags implements bus.Lagging.
func (b *Bus) Lags(ctx context.Context, limit int) ([]bus.Lag, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.options.Stream)
	if err != nil {
		return nil, b.unavailable("look at NATS stream "+b.options.Stream, err)
	}
	var lags []bus.Lag
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if len(lags) < limit && strings.HasPrefix(info.Name, b.options.Consumer+"_") {
			lags = append(lags, bus.Lag{Stream: b.options.Stream, Consumer: info.Name, Waiting: int64(min(info.NumPending, 1<<62))})
		}
	}
	if err := list.Err(); err != nil {
		return nil, b.unavailable("list NATS consumers of "+b.options.Stream, err)
	}
	return lags, nil
}
