package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/result/s3"
	"github.com/noetl/noetl-go/internal/testkit/s3d"
)

func TestLargeResultsGoWhereTheSettingsSay(t *testing.T) {
	t.Parallel()
	bucket := s3d.Start(t, "results")
	there := s3.Options{Endpoint: bucket.Host, Bucket: "results", AccessKey: "k", SecretKey: "s", Insecure: true}
	missing := there
	missing.Bucket = "other"
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		results node.Results
		want    string // of the error; "" = it starts
	}{
		"nothing said":               {node.Results{}, ""},
		"the database":               {node.Results{Store: "db"}, ""},
		"the bucket":                 {node.Results{Store: "s3", S3: there}, ""},
		"a bucket that is not there": {node.Results{S3: missing}, "no bucket other"},
		"S3 without a bucket":        {node.Results{Store: "s3"}, "NOETL_RESULT_S3_BUCKET"},
		"NATS without NATS":          {node.Results{Store: "nats"}, "NATS_URL"},
		"a directory that is none":   {node.Results{Dir: file}, "directory of results"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, err := node.Start(t.Context(), node.Options{DataDir: t.TempDir(), InProcess: true, NoWorker: true, Results: c.results})
			if err == nil {
				err = n.Stop()
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the start says %v, want %q", err, c.want)
			}
		})
	}
}
