package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// newResult is a value of an execution under a reference of its own.
func newResult(execution event.ID, data string) store.Result {
	sum := sha256.Sum256([]byte(data))
	return store.Result{
		ExecutionID: execution, Ref: fmt.Sprintf("noetl://execution/%d/result/fetch/%d", execution, newID()), Name: "fetch",
		Data: []byte(data), SHA256: hex.EncodeToString(sum[:]), CreatedAt: epoch,
		Scope: store.ScopeExecution, MediaType: store.MediaJSON, Tier: store.TierDB, Bytes: int64(len(data)),
	}
}

// wantResult compares a stored value byte by byte: its checksum must stay true.
func wantResult(t *testing.T, s store.Store, want store.Result) {
	t.Helper()
	got, err := s.Result(t.Context(), want.ExecutionID, want.Ref)
	if err != nil {
		t.Errorf("Result(%s): %v", want.Ref, err)
		return
	}
	if !bytes.Equal(want.Data, got.Data) {
		t.Errorf("%s changed from %d bytes to %d: %.80s", want.Ref, len(want.Data), len(got.Data), got.Data)
	}
	want.Data, got.Data = nil, nil
	wantSame(t, want.Ref, want, got)
}

func wantNoResult(t *testing.T, s store.Store, r store.Result) {
	t.Helper()
	_, err := s.Result(t.Context(), r.ExecutionID, r.Ref)
	wantErr(t, "Result of "+r.Ref, err, store.ErrNotFound)
}

func mustPut(t *testing.T, s store.Store, r store.Result) {
	t.Helper()
	if err := s.PutResult(t.Context(), r); err != nil {
		t.Fatalf("PutResult(%s): %v", r.Ref, err)
	}
}

var resultTests = map[string]func(*testing.T, store.Store){
	"every field of a result comes back": func(t *testing.T, s store.Store) {
		for _, data := range []string{`null`, `0`, `"text"`, `[]`, ` {"a": 1.50, "big":9007199254740993, "ü":"\u0000\"\\" , "a": 2}`} {
			r := newResult(newID(), data)
			r.Name = `näme 'quoted' "twice"`
			r.CreatedAt = epoch.In(time.FixedZone("x", 3600))
			mustPut(t, s, r)
			r.CreatedAt = epoch
			wantResult(t, s, r)
		}
		undated := newResult(newID(), `1`)
		undated.CreatedAt = time.Time{}
		mustPut(t, s, undated)
		wantResult(t, s, undated)
	},
	"an unknown result is not found": func(t *testing.T, s store.Store) {
		r := newResult(newID(), `{"a":1}`)
		wantNoResult(t, s, r)
		mustPut(t, s, r)
		other := r
		other.Ref += "0"
		wantNoResult(t, s, other)
	},
	"a result is found only under its execution": func(t *testing.T, s store.Store) {
		mine, theirs := newResult(newID(), `"mine"`), newResult(newID(), `"theirs"`)
		theirs.Ref = mine.Ref
		mustPut(t, s, mine)
		wantNoResult(t, s, theirs)
		mustPut(t, s, theirs)
		wantResult(t, s, mine)
		wantResult(t, s, theirs)
	},
	"a result never changes": func(t *testing.T, s store.Store) {
		x := newID()
		mustAppend(t, s, newBatch(x, 0, 1))
		first := newResult(x, `"first"`)
		mustPut(t, s, first)
		second := newResult(x, `"second"`)
		second.Ref, second.Name = first.Ref, "other"
		mustPut(t, s, second)
		wantResult(t, s, first)
		b := newBatch(x, 1, 1)
		fresh := newResult(x, `"fresh"`)
		again := newResult(x, `"again"`)
		again.Ref = fresh.Ref
		b.Results = []store.Result{second, fresh, again}
		mustAppend(t, s, b)
		wantResult(t, s, first)
		wantResult(t, s, fresh)
	},
	"large results come back whole": func(t *testing.T, s store.Store) {
		x := newID()
		put, appended := newResult(x, `{"blob":"`+strings.Repeat("äx ", 5<<18)+`"}`), newResult(x, `["`+strings.Repeat("y", 5<<20)+`"]`)
		mustPut(t, s, put)
		b := newBatch(x, 0, 1)
		b.Results = []store.Result{appended, newResult(x, `1`)}
		mustAppend(t, s, b)
		wantResult(t, s, put)
		for _, r := range b.Results {
			wantResult(t, s, r)
		}
	},
	"the results of a batch are stored with its events or not at all": func(t *testing.T, s store.Store) {
		x := newID()
		first := newBatch(x, 0, 2)
		first.Results = []store.Result{newResult(x, `1`), newResult(x, `{"n":2}`)}
		mustAppend(t, s, first)
		for _, r := range first.Results {
			wantResult(t, s, r)
		}
		restart, stale, ahead, duplicate := newBatch(x, 0, 1), newBatch(x, 1, 1), newBatch(x, 3, 1), newBatch(x, 2, 2)
		duplicate.Events[1].EventID = first.Events[0].EventID
		for _, c := range []struct {
			batch store.Batch
			want  error
		}{{restart, store.ErrConflict}, {stale, store.ErrConflict}, {ahead, store.ErrConflict}, {duplicate, store.ErrDuplicate}} {
			r := newResult(x, `"lost"`)
			c.batch.Results = []store.Result{r}
			wantErr(t, "Append", s.Append(t.Context(), c.batch), c.want)
			wantNoResult(t, s, r)
		}
	},
	"batches that share a commit keep their results apart": func(t *testing.T, s store.Store) {
		const writers = 24
		kept, lost := make([]store.Result, writers), make([]store.Result, writers)
		var wg sync.WaitGroup
		for i := range writers {
			x := newID()
			start, late := newBatch(x, 0, 1), newBatch(x, 0, 1)
			kept[i], lost[i] = newResult(x, fmt.Sprint(i)), newResult(x, `"lost"`)
			start.Results, late.Results = []store.Result{kept[i]}, []store.Result{lost[i]}
			wg.Go(func() {
				if err := s.Append(t.Context(), start); err != nil {
					t.Errorf("Append = %v", err)
				}
				wantErr(t, "Append again", s.Append(t.Context(), late), store.ErrConflict)
			})
		}
		wg.Wait()
		for i := range writers {
			wantResult(t, s, kept[i])
			wantNoResult(t, s, lost[i])
		}
	},
	"a batch with a result of another execution is refused": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 1)
		b.Results = []store.Result{newResult(newID(), `1`)}
		if err := s.Append(t.Context(), b); err == nil || event.CodeOf(err) != event.Internal {
			t.Errorf("Append = %v, want an internal error", err)
		}
		wantNoResult(t, s, b.Results[0])
	},
}
