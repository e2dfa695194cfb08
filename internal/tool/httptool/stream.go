package httptool

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// decoded is the body without the compression net/http leaves alone because
// the author asked for it by hand, or because the server used it unasked.
func decoded(resp *http.Response) (io.Reader, error) {
	body := bufio.NewReader(resp.Body)
	if resp.Uncompressed {
		return body, nil
	}
	if _, err := body.Peek(1); errors.Is(err, io.EOF) {
		return body, nil
	}
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(body)
		return unpacked{z}, broken(err)
	case "deflate": // meant to be zlib, sent without its frame by some
		if first, err := body.Peek(2); err == nil && first[0]&0x0f == 8 && (uint(first[0])<<8|uint(first[1]))%31 == 0 {
			z, err := zlib.NewReader(body)
			return unpacked{z}, broken(err)
		}
		return unpacked{flate.NewReader(body)}, nil
	}
	return body, nil
}

// unpacked names damage to compressed data what it is.
type unpacked struct{ r io.Reader }

func (u unpacked) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	return n, broken(err)
}

func broken(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zlib.ErrHeader) || errors.Is(err, zlib.ErrChecksum) {
		return &tool.Error{Kind: tool.KindParse, Code: "BAD_COMPRESSION", Message: "the answer is compressed, and damaged"}
	}
	return err
}

// boundedReader ends with an error where an answer becomes too large, and
// remembers any failure: whoever reads may report another.
type boundedReader struct {
	r        io.Reader
	left     int64
	tooLarge *tool.Error
	err      error
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		err = b.tooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// putAside stores the body as it came; data says where it is.
func (a *answer) putAside(ctx context.Context, body io.Reader) (*tool.Result, error) {
	media := a.mediaType()
	switch kind, _, err := mime.ParseMediaType(media); {
	case err != nil:
		media = "application/octet-stream"
	case media == kind && kind == "application/json":
		media += "; charset=utf-8" // to be taken as it is, not to be looked into
	}
	source := &remembering{Reader: body}
	kept, err := a.call.Blobs.Put(ctx, tool.Blob{MediaType: media}, source)
	if source.err != nil {
		return nil, source.err
	}
	if err != nil {
		return nil, err
	}
	value, err := tool.Encode(map[string]any{"_ref": kept.Ref, "bytes": kept.Bytes, "media_type": kept.MediaType, "sha256": kept.SHA256})
	if err != nil {
		return nil, err
	}
	return a.result(value)
}

// remembering keeps the error that reading ended with.
type remembering struct {
	io.Reader
	err error
}

func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// looksLikeJSON guesses from what the server says and how the body begins.
func looksLikeJSON(mediaType string, head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte(byteOrderMark)))
	if len(head) == 0 {
		return false
	}
	kind, _, _ := mime.ParseMediaType(mediaType)
	said := kind == "" || kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == "text/json" || kind == "text/plain"
	return said && strings.IndexByte(`{["`, head[0]) >= 0
}

// streamJSON stores the whole envelope with the body in its place, so that
// later steps read the answer as if it had come inline. The body is also kept
// in a file while it passes: when it turns out not to be JSON, it is stored as
// it is.
func (a *answer) streamJSON(ctx context.Context, head []byte, rest *boundedReader) (*tool.Result, error) {
	file, err := os.CreateTemp(a.tool.opts.TempDir, "noetl-http-*")
	if err != nil {
		return nil, &tool.Error{Kind: tool.KindStorageAccess, Code: "NO_SPACE", Message: "a large answer cannot be kept on the worker's disk", Retryable: true}
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil { // it lives as long as it is open
		return nil, err
	}
	open, err := a.opening()
	if err != nil {
		return nil, err
	}
	whole := io.TeeReader(io.MultiReader(bytes.NewReader(head), rest), file)
	body := &oneValue{r: withoutMark(whole)}
	kept, putErr := a.call.Blobs.Put(ctx, tool.Blob{}, io.MultiReader(bytes.NewReader(open), body, &late{make: a.ending}))
	if putErr == nil {
		return &tool.Result{Stored: kept, HTTP: a.info()}, nil
	}
	if rest.err != nil || ctx.Err() != nil {
		return nil, errors.Join(rest.err, ctx.Err())
	}
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return nil, err
	}
	if !body.spoilt && isJSON(file) { // the store failed, not the answer
		return nil, putErr
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return a.putAside(ctx, file)
}

func withoutMark(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if mark, err := b.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = b.Discard(len(mark))
	}
	return b
}

// isJSON tells whether a file holds one value.
func isJSON(file *os.File) bool {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return true
	}
	dec := json.NewDecoder(withoutMark(file))
	for depth, ended := 0, false; ; {
		token, err := dec.Token()
		if err != nil {
			return ended && errors.Is(err, io.EOF)
		}
		if ended {
			return false
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		ended = depth == 0
	}
}

// late is text that is made when it is needed.
type late struct {
	make func() ([]byte, error)
	text *bytes.Reader
}

func (l *late) Read(p []byte) (int, error) {
	if l.text == nil {
		b, err := l.make()
		if err != nil {
			return 0, err
		}
		l.text = bytes.NewReader(b)
	}
	return l.text.Read(p)
}

var errSeveral = errors.New("the answer is not one JSON value")

// oneValue passes on a body that is to stand for one value inside other JSON,
// and stops where it would reach out of its place. Whoever reads checks the
// rest of the grammar.
type oneValue struct {
	r       io.Reader
	depth   int
	quoted  bool
	escaped bool
	ended   bool // the value is complete
	spoilt  bool
}

func (o *oneValue) Read(p []byte) (int, error) {
	n, err := o.r.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		if o.quoted && !o.escaped {
			if skip := plain(rest); skip > 0 {
				rest = rest[skip:]
				continue
			}
		}
		if !o.accepts(rest[0]) {
			o.spoilt = true
			return 0, errSeveral
		}
		rest = rest[1:]
	}
	if errors.Is(err, io.EOF) && (o.depth != 0 || o.quoted) {
		o.spoilt = true
		return 0, errSeveral
	}
	return n, err
}

// plain counts the bytes of a string up to one that means something.
func plain(text []byte) int {
	n := bytes.IndexByte(text, '"')
	if n < 0 {
		n = len(text)
	}
	if slash := bytes.IndexByte(text[:n], '\\'); slash >= 0 {
		n = slash
	}
	return n
}

func (o *oneValue) accepts(c byte) bool {
	if o.quoted {
		switch {
		case o.escaped:
			o.escaped = false
		case c == '\\':
			o.escaped = true
		case c == '"':
			o.quoted, o.ended = false, o.depth == 0
		}
		return true
	}
	switch c {
	case ' ', '\t', '\n', '\r':
		return true
	case '"':
		o.quoted = true
	case '{', '[':
		o.depth++
	case '}', ']':
		o.depth--
	case ',', ':':
		if o.depth == 0 {
			return false
		}
	}
	if o.ended || o.depth < 0 {
		return false
	}
	o.ended = o.depth == 0 && !o.quoted && (c == '}' || c == ']')
	return true
}
