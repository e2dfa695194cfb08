//go:build duckdb

package transfer_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/duckdb"
)

func (b *bench) duck(database string, more object) object {
	out := object{"type": "duckdb", "database": filepath.Join(b.dir, database)}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// duckRows runs SQL on a database file and gives the rows of the last statement.
func (b *bench) duckRows(database, sql string) string {
	b.t.Helper()
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: b.dir}))
	res, err := tl.Run(b.t.Context(), b.call(object{"query": sql, "as_objects": false, "database": filepath.Join(b.dir, database)}))
	if err != nil {
		b.t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(res.Data), `"rows":`)
	rows, _, _ = strings.Cut(rows, `,"row_count"`)
	return rows
}

func TestRowsGoThroughDuckDBAndBack(t *testing.T) {
	t.Parallel()
	b := setup(t, fmt.Sprintf(everyType, "src"), fmt.Sprintf(someRows, "src"), fmt.Sprintf(everyType, "dst"))
	query := "SELECT * FROM src WHERE id <> 2 ORDER BY id"
	b.must(object{"source": b.pg(object{"query": query}), "target": b.duck("x.duckdb", object{"table": "t"})})
	types := b.duckRows("x.duckdb", "SELECT column_type FROM (DESCRIBE t) WHERE column_name IN ('id','f','n2','n','b','bt','j','d','ts','tz','u')")
	if want := `[["BIGINT"],["DOUBLE"],["VARCHAR"],["DECIMAL(10,2)"],["BOOLEAN"],["BLOB"],["JSON"],["DATE"],["TIMESTAMP"],["TIMESTAMP WITH TIME ZONE"],["UUID"]]`; types != want {
		t.Errorf("types are %s", types)
	}
	b.must(object{"source": b.duck("x.duckdb", object{"query": "SELECT * FROM t ORDER BY id"}), "target": b.pg(object{"table": "dst"})})
	if diff := cmp.Diff(b.rows(query), b.rows("SELECT * FROM dst ORDER BY id")); diff != "" {
		t.Errorf("rows differ (-source +target):\n%s", diff)
	}
}

func TestNestedValuesReachDuckDBAsItsOwnTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.duckRows("x.duckdb", "CREATE TABLE t (id INTEGER PRIMARY KEY, l INTEGER[], s STRUCT(a INTEGER, b VARCHAR), m MAP(VARCHAR, INTEGER), bin BLOB, n DECIMAL(20,2)); SELECT 1")
	rows := b.file("x.ndjson", `{"id":1,"l":[1,2],"s":{"a":1,"b":"x"},"m":{"k":5},"bin":"AP8=","n":123456789012345678.91}`+"\n"+`{"id":2,"l":null}`+"\n")
	b.must(object{"source": object{"type": "ndjson", "path": rows}, "target": b.duck("x.duckdb", object{"table": "t"})})
	if got, want := b.duckRows("x.duckdb", "SELECT * FROM t ORDER BY id"), `[[1,[1,2],{"a":1,"b":"x"},{"k":5},"AP8=","123456789012345678.91"],[2,null,null,null,null,null]]`; got != want {
		t.Errorf("rows are %s", got)
	}
}

func TestDuckDBIsReplacedUpsertedAndLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.duckRows("x.duckdb", "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR); INSERT INTO t VALUES (1, 'old'), (9, 'old'); SELECT 1")
	csv := object{"type": "csv", "path": b.file("x.csv", "id,name\n1,one\n2,first\n2,two\n")}
	target := b.duck("x.duckdb", object{"table": "t"})
	b.must(object{"source": csv, "target": target, "mode": "upsert", "key": []any{"id"}})
	if got, want := b.duckRows("x.duckdb", "SELECT * FROM t ORDER BY id"), `[[1,"one"],[2,"two"],[9,"old"]]`; got != want {
		t.Errorf("after upsert: %s", got)
	}
	_, err := b.run(object{"source": csv, "target": target, "mode": "replace"})
	failed(t, err, tool.KindDBConstraint, "")
	broken := object{"type": "csv", "path": b.file("y.csv", "id,name\n5,five\noops,six\n")}
	_, err = b.run(object{"source": broken, "target": target, "mode": "replace"})
	failed(t, err, tool.KindUnknown, "oops")
	if got, want := b.duckRows("x.duckdb", "SELECT * FROM t ORDER BY id"), `[[1,"one"],[2,"two"],[9,"old"]]`; got != want {
		t.Errorf("after failures: %s", got)
	}
	good := object{"type": "csv", "path": b.file("z.csv", "id,name\n5,five\n")}
	b.must(object{"source": good, "target": target, "mode": "replace"})
	if got, want := b.duckRows("x.duckdb", "SELECT * FROM t"), `[[5,"five"]]`; got != want {
		t.Errorf("after replace: %s", got)
	}
}

func TestTransfersInOppositeDirectionsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, file := range []string{"a.duckdb", "b.duckdb"} {
		b.duckRows(file, "CREATE TABLE src AS SELECT range AS n FROM range(5000); CREATE TABLE dst (n BIGINT); SELECT 1")
	}
	var group sync.WaitGroup
	for range 3 {
		for _, way := range [][2]string{{"a.duckdb", "b.duckdb"}, {"b.duckdb", "a.duckdb"}, {"a.duckdb", "a.duckdb"}} {
			group.Go(func() {
				call := b.call(object{"source": b.duck(way[0], object{"table": "src"}), "target": b.duck(way[1], object{"table": "dst"})})
				call.Log = &strings.Builder{}
				if _, err := b.tool.Run(t.Context(), call); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	if got := b.duckRows("a.duckdb", "SELECT count(*) FROM dst"); got != "[[30000]]" {
		t.Errorf("a has %s", got)
	}
}

func TestManyRowsGoIntoDuckDBInOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.duckRows("x.duckdb", "CREATE TABLE t (id INTEGER PRIMARY KEY); SELECT 1")
	source := b.pg(object{"query": "SELECT CASE WHEN g = 450000 THEN 1 ELSE g END AS id FROM generate_series(1, 450000) g"})
	_, err := b.run(object{"source": source, "target": b.duck("x.duckdb", object{"table": "t"})})
	failed(t, err, tool.KindDBConstraint, "")
	if got := b.duckRows("x.duckdb", "SELECT count(*) FROM t"); got != "[[0]]" {
		t.Errorf("rows of a failed transfer: %s", got)
	}
}
