package node

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/result/file"
	natstier "github.com/noetl/noetl-go/internal/result/nats"
	"github.com/noetl/noetl-go/internal/result/s3"
)

// Results say where values are kept that are too large for the log.
type Results struct {
	Store    string        // the tier of large ones: auto, db, nats, file or s3; "" = auto
	Dir      string        // of the file tier; "" = below the data directory of a server with its own database
	S3       s3.Options    // without a bucket there is no such tier
	Grace    time.Duration // how long they outlive their execution; 0 = default
	MaxBytes int64         // of one; 0 = default
}

// natsConn is a bus that stands on NATS.
type natsConn interface{ Conn() *nats.Conn }

// openResults opens the tiers that are configured. Large values go to the one
// that is named; without a name to the bucket if there is one, else to files if
// this server is the only one, else into the database, which all servers share.
func (n *Node) openResults(ctx context.Context, o Options) (control.ResultOptions, error) {
	r := o.Results
	out := control.ResultOptions{Large: r.Store, MaxBytes: r.MaxBytes, Grace: r.Grace}
	if r.Dir == "" && !o.usesPostgres() {
		r.Dir = filepath.Join(o.DataDir, "results")
	}
	add := func(tier result.Tier, err error) error {
		if err != nil {
			return err
		}
		out.Tiers = append(out.Tiers, tier)
		return nil
	}
	if r.Dir != "" {
		if err := add(file.Open(r.Dir)); err != nil {
			return out, err
		}
	}
	if bus, ok := n.bus.(natsConn); ok {
		tier := natstier.New(bus.Conn())
		if r.Store == "nats" {
			if err := tier.Ready(ctx); err != nil {
				return out, err
			}
		}
		out.Tiers = append(out.Tiers, tier)
	}
	if r.S3.Bucket != "" {
		if err := add(s3.Open(ctx, r.S3)); err != nil {
			return out, err
		}
	}
	for i, tier := range out.Tiers {
		out.Tiers[i] = meteredTier{tier, &n.metrics.System}
	}
	switch {
	case r.Store != "" && r.Store != "auto":
	case r.S3.Bucket != "":
		out.Large = "s3"
	case !o.usesPostgres():
		out.Large = "file"
	default:
		out.Large = ""
	}
	for _, tier := range out.Tiers {
		if tier.Name() == out.Large {
			return out, nil
		}
	}
	if out.Large != "" && out.Large != "db" {
		return out, fmt.Errorf("large results are to be kept in %s, which is not configured: name the %s", out.Large, missingSetting[out.Large])
	}
	return out, nil
}

var missingSetting = map[string]string{
	"file": "directory, NOETL_RESULT_DIR", "s3": "bucket, NOETL_RESULT_S3_BUCKET", "nats": "NATS server, NATS_URL",
}
