// Package s3 keeps large values in a bucket of anything that speaks S3: AWS,
// MinIO, Google Cloud Storage. It must not know what is in them.
package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/noetl/noetl-go/internal/result"
)

// partSize is what is held of a value while it is sent.
const partSize = 8 << 20

// Options name the bucket. Without AccessKey the usual places of the machine
// are asked: environment, shared file, instance role.
type Options struct {
	Endpoint  string // host[:port]; "" = s3.amazonaws.com
	Bucket    string
	Region    string
	AccessKey string
	SecretKey string
	Prefix    string // before every key
	Insecure  bool   // HTTP instead of HTTPS
	Transport http.RoundTripper
}

// Tier is a bucket.
type Tier struct {
	core   *minio.Core
	bucket string
	prefix string
}

var _ result.Tier = (*Tier)(nil)

// Open looks whether the bucket is there.
func Open(ctx context.Context, o Options) (*Tier, error) {
	if o.Bucket == "" {
		return nil, errors.New("the bucket of results has no name")
	}
	if o.Endpoint == "" {
		o.Endpoint = "s3.amazonaws.com"
	}
	core, err := minio.NewCore(o.Endpoint, &minio.Options{Creds: o.credentials(), Secure: !o.Insecure, Region: o.Region, Transport: o.Transport})
	if err != nil {
		return nil, fmt.Errorf("open bucket %s at %s: %w", o.Bucket, o.Endpoint, err)
	}
	there, err := core.BucketExists(ctx, o.Bucket)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open bucket %s at %s: %w", o.Bucket, o.Endpoint, err)
	case !there:
		return nil, fmt.Errorf("there is no bucket %s at %s: make it first", o.Bucket, o.Endpoint)
	}
	prefix := strings.Trim(o.Prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Tier{core, o.Bucket, prefix}, nil
}

func (o *Options) credentials() *credentials.Credentials {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
}

// Name implements result.Tier.
func (t *Tier) Name() string { return "s3" }

// Put implements result.Tier. Parts carry an MD5, which every implementation
// checks, instead of the newer checksums, which some refuse.
func (t *Tier) Put(ctx context.Context, key string, r io.Reader) error {
	_, err := t.core.Client.PutObject(ctx, t.bucket, t.prefix+key, r, -1, minio.PutObjectOptions{
		ContentType: "application/zstd", PartSize: partSize, SendContentMd5: true, DisableContentSha256: true,
	})
	if err != nil {
		return fmt.Errorf("put object: %w", err)
	}
	return nil
}

// Open implements result.Tier.
func (t *Tier) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if length == 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	var o minio.GetObjectOptions
	if err := o.SetRange(offset, offset+length-1); err != nil {
		return nil, err
	}
	body, _, _, err := t.core.GetObject(ctx, t.bucket, t.prefix+key, o)
	if err != nil {
		return nil, fmt.Errorf("get object: %w", err)
	}
	return body, nil
}

// Delete implements result.Tier.
func (t *Tier) Delete(ctx context.Context, key string) error {
	if err := t.core.RemoveIncompleteUpload(ctx, t.bucket, t.prefix+key); err != nil && !absent(err) {
		return fmt.Errorf("give up upload: %w", err)
	}
	if err := t.core.Client.RemoveObject(ctx, t.bucket, t.prefix+key, minio.RemoveObjectOptions{}); err != nil && !absent(err) {
		return fmt.Errorf("delete object: %w", err)
	}
	return nil
}

func absent(err error) bool {
	code := minio.ToErrorResponse(err).Code
	return code == minio.NoSuchKey || code == minio.NoSuchUpload
}
