package node

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func TestAnArchiveHoldsEveryEventAndItsManifestProvesIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "on the way")
	a, err := openArchive(dir, 7)
	if err != nil {
		t.Fatal(err)
	}
	var batch []control.ArchivedExecution
	for id := event.ID(100); id < 103; id++ {
		x := control.ArchivedExecution{Execution: store.Execution{ExecutionID: id, Path: "p", Status: event.StatusFailed, EndedAt: time.Unix(5, 0)}}
		for seq := range int64(4) {
			x.Events = append(x.Events, event.Event{ExecutionID: id, Seq: seq + 1, EventID: id*10 + event.ID(seq), Type: event.StepExit, Result: json.RawMessage(`{"a":"ü"}`)})
		}
		batch = append(batch, x)
	}
	for range 2 { // as after a crash between archiving and removing
		if err := a.Keep(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "*.manifest.json"))
	files, _ := os.ReadDir(dir)
	if err != nil || len(manifests) != 2 || len(files) != 4 {
		t.Fatalf("%d manifests among %d files, %v", len(manifests), len(files), err)
	}
	for _, name := range manifests {
		var m manifest
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		packed, err := os.ReadFile(filepath.Join(dir, m.File))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(packed)
		if m.SHA256 != hex.EncodeToString(sum[:]) || m.Bytes != len(packed) || m.Events != 12 || len(m.Executions) != 3 || m.Executions[1].ExecutionID != 101 {
			t.Errorf("the manifest says %+v of %d bytes", m, len(packed))
		}
		wantArchived(t, packed, batch)
	}
}

// wantArchived unpacks a file and compares its lines with the events.
func wantArchived(t *testing.T, packed []byte, batch []control.ArchivedExecution) {
	t.Helper()
	r, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	for _, x := range batch {
		for _, want := range x.Events {
			var got event.Event
			if !lines.Scan() {
				t.Fatalf("the file ends before event %d: %v", want.EventID, lines.Err())
			}
			if err := json.Unmarshal(lines.Bytes(), &got); err != nil || got.EventID != want.EventID || got.Seq != want.Seq || string(got.Result) != string(want.Result) {
				t.Errorf("line %s, %v, want event %d", lines.Text(), err, want.EventID)
			}
		}
	}
	if lines.Scan() {
		t.Errorf("one line too many: %s", lines.Text())
	}
}

func TestAnArchiveThatCannotBeWrittenStopsTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openArchive(file, 1); err == nil || !strings.Contains(err.Error(), "archive directory") {
		t.Errorf("openArchive of a file = %v", err)
	}
}
