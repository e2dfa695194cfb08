package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
)

// archive keeps removed executions in a directory: a file of compressed JSON
// lines per batch, one line per event, and beside it a manifest with its
// checksum and the executions in it. A file without a manifest is of a batch
// that was not removed.
type archive struct {
	dir     string
	machine int
}

func openArchive(dir string, machine int) (*archive, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("archive directory: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return nil, fmt.Errorf("the archive directory cannot be written to: %w", err)
	}
	return &archive{dir, machine}, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// manifest says what a file of the archive holds.
type manifest struct {
	File       string             `json:"file"`
	SHA256     string             `json:"sha256"`
	Bytes      int                `json:"bytes"`
	Events     int                `json:"events"`
	WrittenAt  time.Time          `json:"written_at"`
	Executions []archivedManifest `json:"executions"`
}

type archivedManifest struct {
	ExecutionID event.StringID `json:"execution_id"`
	Path        string         `json:"path"`
	Status      string         `json:"status"`
	Events      int            `json:"events"`
	EndedAt     time.Time      `json:"ended_at"`
}

// Keep implements control.Archive.
func (a *archive) Keep(_ context.Context, batch []control.ArchivedExecution) error {
	var body bytes.Buffer
	packed, err := zstd.NewWriter(&body)
	if err != nil {
		return err
	}
	now := failpoint.Now().UTC()
	name := fmt.Sprintf("%s-%d-%d.jsonl.zst", now.Format("20060102T150405.000000000"), a.machine, batch[0].Execution.ExecutionID)
	m := manifest{File: name, WrittenAt: now}
	lines := json.NewEncoder(packed)
	for _, x := range batch {
		for i := range x.Events {
			if err := lines.Encode(&x.Events[i]); err != nil {
				return err
			}
		}
		m.Events += len(x.Events)
		row := &x.Execution
		m.Executions = append(m.Executions, archivedManifest{event.StringID(row.ExecutionID), row.Path, row.Status, len(x.Events), row.EndedAt})
	}
	if err := packed.Close(); err != nil {
		return err
	}
	sum := sha256.Sum256(body.Bytes())
	m.SHA256, m.Bytes = hex.EncodeToString(sum[:]), body.Len()
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := a.write(name, body.Bytes()); err != nil {
		return err
	}
	return a.write(name+".manifest.json", append(text, '\n'))
}

// write puts a file in place as a whole, durably.
func (a *archive) write(name string, data []byte) (err error) {
	f, err := os.CreateTemp(a.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(a.dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(a.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
