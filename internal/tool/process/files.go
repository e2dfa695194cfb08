package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// addFiles writes what references stand for into the private directory, piece
// by piece.
func (p *Place) addFiles(ctx context.Context, call *tool.Call, files map[string]any) error {
	p.Files = make(map[string]string, len(files))
	for _, name := range tool.SortedKeys(files) {
		ref, err := reference(name, files[name])
		if err != nil {
			return err
		}
		if call.Blobs == nil {
			return tool.ConfigErrorf("files.%s: this worker has no store to read references from", name)
		}
		path := filepath.Join(p.Dir, name)
		if err := p.fetch(ctx, call.Blobs, name, ref, path); err != nil {
			return err
		}
		p.Files[name] = path
	}
	return nil
}

// reference is a value of files: a reference as text, or the object that
// stands for stored data.
func reference(name string, v any) (string, error) {
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\\\x00") {
		return "", tool.ConfigErrorf("files: %q cannot be the name of a file; write a plain name such as report.csv", name)
	}
	if m, isMap := v.(map[string]any); isMap {
		_, v, _ = tool.Fields(m).First("_ref", "ref")
	}
	ref, _ := v.(string)
	if !strings.HasPrefix(ref, "noetl://") {
		return "", tool.ConfigErrorf("files.%s must be a reference to stored data, such as {{ step._ref }}", name)
	}
	return ref, nil
}

func (p *Place) fetch(ctx context.Context, blobs tool.Blobs, name, ref, path string) error {
	r, err := blobs.Open(ctx, ref, 0, 0)
	if err != nil {
		return fetchError(ctx, name, err)
	}
	defer r.Close()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fetchError(ctx, name, err)
	}
	limit := p.Limits.Disk
	from := io.Reader(r)
	if limit > 0 {
		from = io.LimitReader(r, limit+1)
	}
	n, err := io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		return fetchError(ctx, name, err)
	}
	if limit > 0 && n > limit {
		return &tool.Error{Kind: tool.KindResourceLimit, Code: "DISK_LIMIT", Message: fmt.Sprintf("files.%s is larger than the step's disk limit of %d bytes", name, limit)}
	}
	return nil
}

func fetchError(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	e := &tool.Error{Kind: tool.KindStorageAccess, Code: "FILE_UNREADABLE", Message: fmt.Sprintf("files.%s cannot be fetched: %v", name, err)}
	if isFull(err) {
		e.Kind = tool.KindStorageQuota
	}
	return e
}
