package cli

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/node"
)

// resultFlags say where values are kept that are too large for the log.
type resultFlags struct {
	ResultStore    string        `help:"Where large results are kept: auto, db, nats, file or s3." default:"auto" env:"NOETL_RESULT_STORE" placeholder:"NAME"`
	ResultDir      string        `help:"Directory of results that are kept as files. Default: below the data directory, without PostgreSQL." env:"NOETL_RESULT_DIR" placeholder:"DIR"`
	ResultGrace    time.Duration `help:"How long results outlive their execution." default:"24h" env:"NOETL_RESULT_GRACE" placeholder:"DURATION"`
	ResultMaxBytes int64         `help:"Largest result that is accepted." default:"4294967296" env:"NOETL_RESULT_MAX_BYTES" placeholder:"BYTES"`
	S3Endpoint     string        `name:"result-s3-endpoint" help:"Address of the S3 service." env:"NOETL_RESULT_S3_ENDPOINT" placeholder:"HOST"`
	S3Bucket       string        `name:"result-s3-bucket" help:"Bucket of results." env:"NOETL_RESULT_S3_BUCKET" placeholder:"NAME"`
	S3Region       string        `name:"result-s3-region" help:"Its region." env:"NOETL_RESULT_S3_REGION" placeholder:"NAME"`
	S3AccessKey    string        `name:"result-s3-access-key" help:"Access key; without one the machine's own credentials are used." env:"NOETL_RESULT_S3_ACCESS_KEY" placeholder:"KEY"`
	S3SecretKey    string        `name:"result-s3-secret-key" help:"Its secret." env:"NOETL_RESULT_S3_SECRET_KEY" placeholder:"KEY"`
	S3Prefix       string        `name:"result-s3-prefix" help:"Beginning of the names of all objects." env:"NOETL_RESULT_S3_PREFIX" placeholder:"PATH"`
	S3Insecure     bool          `name:"result-s3-insecure" help:"Use HTTP instead of HTTPS." env:"NOETL_RESULT_S3_INSECURE"`
}

var resultSettings = []string{
	"NOETL_RESULT_STORE", "NOETL_RESULT_DIR", "NOETL_RESULT_GRACE", "NOETL_RESULT_MAX_BYTES", "NOETL_RESULT_S3_ENDPOINT", "NOETL_RESULT_S3_BUCKET",
	"NOETL_RESULT_S3_REGION", "NOETL_RESULT_S3_ACCESS_KEY", "NOETL_RESULT_S3_SECRET_KEY", "NOETL_RESULT_S3_PREFIX", "NOETL_RESULT_S3_INSECURE",
}

// leastResult is what must fit: the largest result that travels within JSON.
const leastResult = 1 << 20

func (f *resultFlags) options() (node.Results, error) {
	if err := refuseBlank(resultSettings...); err != nil {
		return node.Results{}, err
	}
	kind := strings.ToLower(strings.TrimSpace(f.ResultStore))
	names := []string{"auto", "db", "nats", "file", "s3"}
	switch {
	case !slices.Contains(names, kind):
		return node.Results{}, invalidf("--result-store %q: want %s", f.ResultStore, strings.Join(names, ", "))
	case f.ResultGrace < time.Minute:
		return node.Results{}, invalidf("--result-grace %s is too short: whoever looks at an execution that just ended would find no results (at least 1m)", f.ResultGrace)
	case f.ResultMaxBytes < leastResult:
		return node.Results{}, invalidf("--result-max-bytes %d: want at least %d", f.ResultMaxBytes, leastResult)
	case f.S3Bucket == "" && (f.S3Endpoint != "" || f.S3Region != "" || f.S3AccessKey != "" || f.S3Prefix != "" || f.S3Insecure):
		return node.Results{}, invalidf("results are to be kept in S3, but NOETL_RESULT_S3_BUCKET names no bucket")
	case (f.S3AccessKey == "") != (f.S3SecretKey == ""):
		return node.Results{}, invalidf("NOETL_RESULT_S3_ACCESS_KEY and NOETL_RESULT_S3_SECRET_KEY belong together: give both or none")
	}
	out := node.Results{Store: kind, Dir: f.ResultDir, Grace: f.ResultGrace, MaxBytes: f.ResultMaxBytes}
	endpoint := f.S3Endpoint
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		if u.Path != "" && u.Path != "/" || u.Scheme != "http" && u.Scheme != "https" || u.Scheme == "https" && f.S3Insecure {
			return out, invalidf("NOETL_RESULT_S3_ENDPOINT %q: want a host, such as storage.googleapis.com", endpoint)
		}
		endpoint, f.S3Insecure = u.Host, u.Scheme == "http"
	}
	out.S3.Endpoint, out.S3.Bucket, out.S3.Region, out.S3.Prefix, out.S3.Insecure = endpoint, f.S3Bucket, f.S3Region, f.S3Prefix, f.S3Insecure
	out.S3.AccessKey, out.S3.SecretKey = f.S3AccessKey, f.S3SecretKey
	return out, nil
}
