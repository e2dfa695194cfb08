package cli

import (
	"strings"
	"testing"
	"time"
)

func TestSettingsOfResults(t *testing.T) {
	t.Parallel()
	usual := resultFlags{ResultStore: "auto", ResultGrace: 24 * time.Hour, ResultMaxBytes: 4 << 30}
	for name, c := range map[string]struct {
		change func(*resultFlags)
		want   string
	}{
		"an unknown store":        {func(f *resultFlags) { f.ResultStore = "tape" }, "--result-store"},
		"no store":                {func(f *resultFlags) { f.ResultStore = " " }, "--result-store"},
		"no grace":                {func(f *resultFlags) { f.ResultGrace = 0 }, "--result-grace"},
		"nothing is small enough": {func(f *resultFlags) { f.ResultMaxBytes = 10 }, "--result-max-bytes"},
		"S3 without a bucket":     {func(f *resultFlags) { f.S3Endpoint = "s3.example" }, "NOETL_RESULT_S3_BUCKET"},
		"a key without a secret":  {func(f *resultFlags) { f.S3Bucket, f.S3AccessKey = "b", "k" }, "belong together"},
		"an address with a path":  {func(f *resultFlags) { f.S3Bucket, f.S3Endpoint = "b", "https://s3.example/b" }, "want a host"},
		"secure and insecure":     {func(f *resultFlags) { f.S3Bucket, f.S3Endpoint, f.S3Insecure = "b", "https://s3.example", true }, "want a host"},
	} {
		f := usual
		c.change(&f)
		if _, err := f.options(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	f := usual
	f.S3Bucket, f.S3Endpoint = "b", "http://127.0.0.1:9000"
	o, err := f.options()
	if err != nil || o.S3.Endpoint != "127.0.0.1:9000" || !o.S3.Insecure || o.Store != "auto" || o.Grace != 24*time.Hour {
		t.Errorf("%+v, %v", o, err)
	}
}
