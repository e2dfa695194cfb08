package transfer_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// rowsOfVolume is enough to show rows being held: they are some 30 MB.
const rowsOfVolume = 200_000

// Many rows pass through without being held, from table to table and by way of
// a file.
func TestManyRowsNeedLittleMemory(t *testing.T) {
	b := setup(t,
		fmt.Sprintf("CREATE TABLE src AS SELECT g AS id, repeat('name ', 10) || g AS name, g * 1.5::float8 AS x, now() AS at FROM generate_series(1, %d) g", rowsOfVolume),
		"CREATE TABLE dst (LIKE src)")
	file := object{"type": "parquet", "path": filepath.Join(b.dir, "rows.parquet")}
	source, target := b.pg(object{"table": "src"}), b.pg(object{"table": "dst"})
	for _, hop := range []struct {
		name     string
		from, to object
	}{{"table to table", source, target}, {"table to file", source, file}, {"file to table", file, target}} {
		heap := &heapGauge{}
		call := b.call(object{"source": hop.from, "target": hop.to, "mode": "replace"})
		call.Log = heap
		begun := time.Now()
		if _, err := b.tool.Run(t.Context(), call); err != nil {
			t.Fatalf("%s: %v", hop.name, err)
		}
		t.Logf("%s: %d MiB, %s", hop.name, heap.most>>20, time.Since(begun))
		if heap.looks < 4 || heap.most > 24<<20 {
			t.Errorf("%s held %d MiB, seen %d times", hop.name, heap.most>>20, heap.looks)
		}
	}
	if got := b.rows("SELECT count(*) FROM (SELECT * FROM src EXCEPT SELECT * FROM dst) q"); got != "(0)" {
		t.Errorf("rows that did not arrive: %s", got)
	}
}

// heapGauge looks at what is in use whenever progress is reported.
type heapGauge struct {
	most  uint64
	looks int
}

func (h *heapGauge) Write(b []byte) (int, error) {
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	h.most = max(h.most, now.HeapAlloc)
	h.looks++
	return len(b), nil
}
