package node

import (
	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

// output is where the in-process worker sends what commands print. Without an
// API there is nobody to read it.
func (n *Node) output(o Options) func(*event.Command) worker.CommandOutput {
	logs := n.logs()
	if o.Listen == "" || logs == nil {
		return nil
	}
	out := worker.NewOutput(logs, o.Logger)
	n.clean = append(n.clean, out.Close)
	return out.For
}

// logs is the bus as the carrier of live output; nil when it carries none.
func (n *Node) logs() bus.Logs {
	logs, _ := n.bus.(bus.Logs)
	return logs
}
