package source

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

func (l *Loader) readHTTP(ctx context.Context, call *tool.Call, p *place, limit time.Duration) ([]byte, error) {
	u, err := p.address()
	if err != nil {
		return nil, err
	}
	c, err := call.Login(ctx, p.source)
	if err != nil {
		return nil, err
	}
	return l.get(ctx, call, p.source, u, c, limit)
}

// get makes the request and reads the script from the answer.
func (l *Loader) get(ctx context.Context, call *tool.Call, s tool.Fields, u *url.URL, c *tool.Credential, limit time.Duration) ([]byte, error) {
	what := "load the script from " + outbound.Shown(u)
	method, err := s.String("method")
	if err != nil {
		return nil, err
	}
	if method = strings.ToUpper(method); method == "" {
		method = http.MethodGet
	}
	if method != http.MethodGet && method != http.MethodPost {
		return nil, tool.ConfigErrorf("script.source.method %q is not one of GET, POST", method)
	}
	headers, err := s.Texts("headers")
	if err != nil {
		return nil, err
	}
	proof, err := l.prover.Prove(ctx, call, c)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, tool.ConfigErrorf("%s: the request cannot be made", what)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	proof.Apply(req.Header, req.URL)
	client := &http.Client{Transport: l.pool.Transport(true), CheckRedirect: egress.WithSecrets(proof.Headers()...)}
	resp, err := client.Do(req)
	if err != nil {
		return nil, outbound.Failure(ctx, what, limit, err)
	}
	defer resp.Body.Close()
	if e := outbound.StatusError(what, resp.StatusCode, resp.Header); e != nil {
		if resp.StatusCode == http.StatusUnauthorized {
			proof.Rejected()
		}
		return nil, e
	}
	text, err := readAll(resp.Body, "the script at "+outbound.Shown(u))
	if err != nil {
		return nil, outbound.Failure(ctx, what, limit, err)
	}
	return text, nil
}

// object is a script in a bucket.
type object struct {
	bucket, key string
	endpoint    *url.URL
	region      string
}

func (l *Loader) readBucket(ctx context.Context, call *tool.Call, p *place, limit time.Duration) ([]byte, error) {
	c, err := call.Login(ctx, p.source)
	if err != nil {
		return nil, err
	}
	o, err := p.object(c)
	if err != nil {
		return nil, err
	}
	id, secret := c.Text("access_key_id", "aws_access_key_id", "access_key", "key_id"), c.Text("secret_access_key", "aws_secret_access_key", "secret_key", "secret")
	if p.kind == "gcs" && id == "" { // with a token, or without any proof
		return l.get(ctx, call, tool.Fields{}, o.endpoint.JoinPath(o.bucket, o.key), c, limit)
	}
	creds := credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	if id != "" {
		call.Hidden(secret)
		creds = credentials.NewStaticV4(id, secret, c.Text("session_token", "aws_session_token"))
	}
	store, err := minio.New(o.endpoint.Host, &minio.Options{
		Creds: creds, Secure: o.endpoint.Scheme == "https", Transport: l.pool.Transport(true), Region: o.region, MaxRetries: 2,
	})
	if err != nil {
		return nil, tool.ConfigErrorf("script.source.endpoint %s is not valid", outbound.Shown(o.endpoint))
	}
	what := "load the script " + p.kind + "://" + o.bucket + "/" + o.key
	body, err := store.GetObject(ctx, o.bucket, o.key, minio.GetObjectOptions{})
	if err != nil {
		return nil, bucketError(ctx, what, limit, err)
	}
	defer body.Close()
	text, err := readAll(body, "the script "+o.key)
	if err != nil {
		return nil, bucketError(ctx, what, limit, err)
	}
	return text, nil
}

func bucketError(ctx context.Context, what string, limit time.Duration, err error) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok || answer.StatusCode == 0 {
		return outbound.Failure(ctx, what, limit, err)
	}
	e := outbound.StatusError(what, answer.StatusCode, nil)
	if e == nil {
		return &tool.Error{Kind: tool.KindStorageAccess, Code: answer.Code, Message: what + ": " + answer.Code}
	}
	if answer.Code != "" {
		e.Message += " (" + answer.Code + ")"
	}
	return e
}

func (p *place) object(c *tool.Credential) (*object, error) {
	var texts [5]string
	for i, names := range [][]string{{"bucket"}, {"key", "object", "path"}, {"endpoint", "url"}, {"region"}} {
		text, err := p.source.String(names...)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	o := &object{bucket: texts[0], key: texts[1], region: texts[3]}
	if _, rest, ok := strings.Cut(p.uri, "://"); ok {
		bucket, key, _ := strings.Cut(rest, "/")
		if o.bucket == "" {
			o.bucket = bucket
		}
		if o.key == "" {
			o.key = key
		}
	} else if o.key == "" {
		o.key = p.uri
	}
	o.key = strings.TrimPrefix(o.key, "/")
	if o.bucket == "" || o.key == "" {
		return nil, tool.ConfigErrorf("script needs a uri such as %s://bucket/path", map[string]string{"s3": "s3", "gcs": "gs"}[p.kind])
	}
	if o.region == "" {
		o.region = c.Text("region", "aws_region")
	}
	endpoint := texts[2]
	if endpoint == "" {
		endpoint = c.Text("endpoint", "endpoint_url")
	}
	if endpoint == "" {
		endpoint = map[string]string{"s3": "https://s3.amazonaws.com", "gcs": "https://storage.googleapis.com"}[p.kind]
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	var err error
	o.endpoint, err = outbound.ParseURL("script.source.endpoint", endpoint)
	return o, err
}
