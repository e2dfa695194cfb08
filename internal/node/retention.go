package node

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/noetl/noetl-go/internal/control"
)

// Retention says how long ended executions are kept.
type Retention struct {
	Policy  control.RetentionPolicy // the zero value keeps everything
	Every   time.Duration           // how often what is over is looked for; 0 = default
	PerRun  int                     // executions one run removes at most; 0 = default
	Archive string                  // directory executions go to before they are removed; "" = nowhere
}

// retention is what the control plane is told.
func (n *Node) retention(o Options) (control.RetentionOptions, error) {
	host, _ := os.Hostname()
	out := control.RetentionOptions{
		Policy: o.Retention.Policy, Every: o.Retention.Every, PerRun: o.Retention.PerRun,
		Holder: fmt.Sprintf("%s/%d/%d", host, os.Getpid(), n.machine),
	}
	if o.Retention.Archive == "" {
		return out, nil
	}
	dir, err := filepath.Abs(o.Retention.Archive)
	if err != nil {
		return out, fmt.Errorf("archive directory: %w", err)
	}
	archive, err := openArchive(dir, n.machine)
	if err != nil {
		return out, err
	}
	out.Archive = archive
	return out, nil
}
