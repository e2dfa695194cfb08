package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/noetl/noetl-go/internal/tool"
)

// maxStored bounds a value that goes to a store.
const maxStored = 8 << 30

// storable tells whether a value of that size is put aside.
func storable(call *tool.Call, size uint64) bool {
	limit := uint64(call.InlineLimit)
	if call.InlineLimit <= 0 {
		limit = maxResult
	}
	return call.Blobs != nil && size > limit && size <= maxStored
}

// store passes a value on to the store as it comes.
func store(ctx context.Context, call *tool.Call, r io.Reader, size uint64) (*tool.Stored, error) {
	return call.Blobs.Put(ctx, tool.Blob{MediaType: "application/json"}, &exactly{r: r, left: size})
}

// exactly reads a known number of bytes: a stream that ends before is broken,
// not short.
type exactly struct {
	r    io.Reader
	left uint64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if uint64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= uint64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func storeError(what string, err error) *tool.Error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	return &tool.Error{Kind: tool.KindStorageAccess, Code: "NOT_STORED", Message: fmt.Sprintf("%s cannot be stored: %v", what, err)}
}

// handed is how code hands over a file it made: {"_file": path}.
type handed struct {
	File      *string `json:"_file"`
	MediaType string  `json:"media_type"`
	Name      string  `json:"name"`
}

// storeFiles puts files aside that the value, or a member of it, hands over;
// what is stored takes their place.
func (p *program) storeFiles(ctx context.Context, call *tool.Call, body json.RawMessage) (json.RawMessage, *tool.Error) {
	if !bytes.HasPrefix(body, []byte("{")) || !bytes.Contains(body, []byte(`"_file"`)) {
		return body, nil
	}
	if stored, fail := p.storeFile(ctx, call, body); stored != nil || fail != nil {
		return stored, fail
	}
	return p.storeMembers(ctx, call, body)
}

func (p *program) storeMembers(ctx context.Context, call *tool.Call, body json.RawMessage) (json.RawMessage, *tool.Error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	out := []byte{'{'}
	if _, err := dec.Token(); err != nil {
		return body, nil
	}
	for dec.More() {
		key, err := dec.Token()
		var v json.RawMessage
		if err != nil || dec.Decode(&v) != nil {
			return body, nil
		}
		stored, fail := p.storeFile(ctx, call, v)
		if fail != nil {
			return nil, fail
		}
		if stored != nil {
			v = stored
		}
		name, err := tool.Encode(key)
		if err != nil {
			return body, nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), v...)
	}
	return append(out, '}'), nil
}

// storeFile stores one file; nil when the value hands none over.
func (p *program) storeFile(ctx context.Context, call *tool.Call, v json.RawMessage) (json.RawMessage, *tool.Error) {
	var h handed
	if !bytes.HasPrefix(v, []byte("{")) || json.Unmarshal(v, &h) != nil || h.File == nil {
		return nil, nil
	}
	if call.Blobs == nil {
		return nil, tool.ConfigErrorf("the result hands over the file %s, and this worker has no store for it", *h.File)
	}
	f, err := p.place.Open(*h.File)
	if err != nil {
		return nil, &tool.Error{Kind: tool.KindSchema, Code: "RESULT_FILE", Message: fmt.Sprintf("the result hands over a file that cannot be read: %v", err)}
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, &tool.Error{Kind: tool.KindSchema, Code: "RESULT_FILE", Message: fmt.Sprintf("the result hands over %s, which is not a file", *h.File)}
	}
	if h.MediaType == "" {
		h.MediaType = "application/octet-stream"
	}
	at, err := call.Blobs.Put(ctx, tool.Blob{Name: h.Name, MediaType: h.MediaType}, f)
	if err != nil {
		return nil, storeError("the file "+*h.File, err)
	}
	data, err := tool.Encode(map[string]any{"_ref": at.Ref, "bytes": at.Bytes, "media_type": h.MediaType, "sha256": at.SHA256})
	if err != nil {
		return nil, storeError("the file "+*h.File, err)
	}
	return data, nil
}
