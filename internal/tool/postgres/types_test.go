package postgres_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool/postgres"
)

// Types of a server, a value of each as SQL, and as JSON.
var matrix = []struct{ name, sql, json string }{
	{"int2", "(-32768)::int2", "-32768"},
	{"int4", "2147483647::int4", "2147483647"},
	{"int8", "9223372036854775807::int8", "9223372036854775807"},
	{"oid", "4294967295::oid", "4294967295"},
	{"float4", "0.1::float4", "0.1"},
	{"float8", "1e-300::float8", "1e-300"},
	{"float8", "'NaN'::float8", `"NaN"`},
	{"float8", "'-Infinity'::float8", `"-Infinity"`},
	{"numeric", "1.10::numeric", "1.10"},
	{"numeric", "0.1::numeric", "0.1"},
	{"numeric", "12345678901234567890.12::numeric", `"12345678901234567890.12"`},
	{"numeric", "9007199254740993::numeric", "9007199254740993"},
	{"numeric", "99999999999999999999::numeric", `"99999999999999999999"`},
	{"numeric", "'NaN'::numeric", `"NaN"`},
	{"bool", "true", "true"},
	{"text", `E'a"b\\c\n\t\u0001ä😀</x>'`, `"a\"b\\c\n\t\u0001ä😀</x>"`},
	{"text", "''", `""`},
	{"varchar", "'x'::varchar", `"x"`},
	{"char(3)", "'x'::char(3)", `"x  "`},
	{`"char"`, `'x'::"char"`, `"x"`},
	{"name", "'x'::name", `"x"`},
	{"json", `'{"b": 12345678901234567890, "a": [1.0]}'::json`, `{"b": 12345678901234567890, "a": [1.0]}`},
	{"jsonb", `'{"a": {"b": null}}'::jsonb`, `{"a": {"b": null}}`},
	{"jsonb", `'"123"'::jsonb`, `"123"`},
	{"uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
	{"date", "'2026-01-31'::date", `"2026-01-31"`},
	{"date", "'infinity'::date", `"infinity"`},
	{"date", "'0044-03-15 BC'::date", `"0044-03-15 BC"`},
	{"time", "'10:20:30.5'::time", `"10:20:30.5"`},
	{"timetz", "'10:20:30+02'::timetz", `"10:20:30+02"`},
	{"timestamp", "'2026-01-31 10:20:30.123456'::timestamp", `"2026-01-31T10:20:30.123456"`},
	{"timestamptz", "'2026-01-31 10:20:30.5+05:30'::timestamptz", `"2026-01-31T04:50:30.5Z"`},
	{"timestamptz", "'infinity'::timestamptz", `"infinity"`},
	{"interval", "'1 year 2 days 03:04:05.6'::interval", `"P1Y2DT3H4M5.6S"`},
	{"interval", "'-1 day'::interval", `"P-1D"`},
	{"bytea", `'\x00ff10'::bytea`, `"AP8Q"`},
	{"bytea", `''::bytea`, `""`},
	{"inet", "'10.0.0.1/8'::inet", `"10.0.0.1/8"`},
	{"cidr", "'10.0.0.0/8'::cidr", `"10.0.0.0/8"`},
	{"macaddr", "'08:00:2b:01:02:03'::macaddr", `"08:00:2b:01:02:03"`},
	{"int4range", "'[1,5)'::int4range", `"[1,5)"`},
	{"int4multirange", "'{[1,3), [5,7)}'::int4multirange", `"{[1,3),[5,7)}"`},
	{"mood", "'so so'::mood", `"so so"`},
	{"positive", "5::positive", "5"},
	{"pair", `ROW(7, 'a,"b)\')::pair`, `{"n":7,"s":"a,\"b)\\"}`},
	{"pair", `ROW(NULL, '')::pair`, `{"n":null,"s":""}`},
	{"pair[]", `ARRAY[ROW(1, 'x y'), NULL]::pair[]`, `[{"n":1,"s":"x y"},null]`},
	{"nest", `ROW(ROW(1, '"')::pair, ARRAY['a b', NULL]::text[])::nest`, `{"p":{"n":1,"s":"\""},"l":["a b",null]}`},
	{"int4[]", "'{{1,NULL},{3,4}}'::int4[]", "[[1,null],[3,4]]"},
	{"int2[]", "'{}'::int2[]", "[]"},
	{"int8[]", "'{9223372036854775807}'::int8[]", "[9223372036854775807]"},
	{"text[]", `ARRAY['a,b', 'NULL', NULL, '', '{"}', '\']`, `["a,b","NULL",null,"","{\"}","\\"]`},
	{"bool[]", "'{t,f}'::bool[]", "[true,false]"},
	{"float4[]", "'{0.1,NaN}'::float4[]", `[0.1,"NaN"]`},
	{"numeric[]", "'{1.5,12345678901234567890.12}'::numeric[]", `[1.5,"12345678901234567890.12"]`},
	{"jsonb[]", `ARRAY['{"a": [1]}', '[2]']::jsonb[]`, `[{"a": [1]},[2]]`},
	{"uuid[]", "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::uuid[]", `["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]`},
	{"timestamptz[]", `'{"2026-01-31 10:00:00+00"}'::timestamptz[]`, `["2026-01-31T10:00:00Z"]`},
	{"bytea[]", `ARRAY['\x00ff'::bytea]`, `["AP8="]`},
	{"mood[]", "'{happy,\"so so\"}'::mood[]", `["happy","so so"]`},
	{"positive[]", "'{1,2}'::positive[]", "[1,2]"},
	{"box[]", "'{(2,2),(1,1);(4,4),(3,3)}'::box[]", `["(2,2),(1,1)","(4,4),(3,3)"]`},
	{"hstore", `'a=>1, "b c"=>NULL, "q\"\\"=>"x, y"'::hstore`, `{"a":"1","q\"\\":"x, y","b c":null}`},
	{"citext", "'Ab'::citext", `"Ab"`},
	{"bit(3)", "B'101'", `"101"`},
	{"varbit", "B'1'::varbit", `"1"`},
	{"xml", "'<a/>'::xml", `"<a/>"`},
	{"tsvector", "'a b'::tsvector", `"'a' 'b'"`},
	{"point", "'(1,2)'::point", `"(1,2)"`},
	{"money", "1.5::money", `"$1.50"`},
	{"int2vector", "'1 2'::int2vector", "[1,2]"},
	{"text", "NULL", "null"},
	{"int4[]", "NULL", "null"},
}

const madeTypes = `
CREATE EXTENSION IF NOT EXISTS hstore; CREATE EXTENSION IF NOT EXISTS citext;
CREATE TYPE mood AS ENUM ('happy', 'so so'); CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (n int, s text); CREATE TYPE nest AS (p pair, l text[])`

func TestEveryTypeComesBackAndGoesInAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	s.run(fields{"query": madeTypes})
	for i, m := range matrix {
		res, err := s.tool.Run(t.Context(), s.call(fields{"query": "SET TimeZone = 'Asia/Kathmandu'; SELECT " + m.sql + " AS v", "as_objects": false}))
		if err != nil {
			t.Errorf("%s: %v", m.sql, err)
			continue
		}
		var out struct{ Rows [][]json.RawMessage }
		if err := json.Unmarshal(res.Data, &out); err != nil {
			t.Errorf("%s: %v in %s", m.sql, err, res.Data)
			continue
		}
		value := out.Rows[0][0]
		if string(value) != m.json && !cmp.Equal(decodeAny(t, value), decodeAny(t, []byte(m.json))) {
			t.Errorf("%s gives %s, want %s", m.sql, value, m.json)
			continue
		}
		call := s.call(fields{
			"query":  fmt.Sprintf("CREATE TEMP TABLE t%d (v %s); INSERT INTO t%d VALUES (:v); SELECT v::text IS NOT DISTINCT FROM (%s)::%s::text AS same FROM t%d", i, m.name, i, m.sql, m.name, i),
			"params": map[string]any{"v": nil}, "as_objects": false,
		})
		call.Ordered = func(string) (json.RawMessage, error) { return json.RawMessage(`{"v":` + string(value) + `}`), nil }
		res, err = s.tool.Run(t.Context(), call)
		if err != nil {
			t.Errorf("%s as a parameter of %s: %v", value, m.name, err)
		} else if !strings.Contains(string(res.Data), `"rows":[[true]]`) && !(m.name == "json" || m.name == "hstore") {
			t.Errorf("%s as a parameter of %s does not give %s back", value, m.name, m.sql)
		}
	}
}

func decodeAny(t *testing.T, data []byte) any {
	return decode(t, []byte(`{"v":`+string(data)+`}`))["v"]
}

func TestManyRowsGoThroughParametersUnchanged(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	rows := "10000"
	if underRace {
		rows = "1000"
	}
	const columns = `a int2, b int8, c float4, d float8, e numeric, f text, g jsonb, h timestamptz, i bytea, j int4[], k uuid, l bool, m interval, n date`
	s.run(fields{"query": `CREATE TABLE src (` + columns + `); CREATE TABLE dst (LIKE src);
		INSERT INTO src SELECT i % 30000, i::int8 * 922337203685477, random()::float4, random() * 1e10, (random() * 1e6)::numeric / 7,
			repeat(chr(32 + i % 1000), i % 5) || '''"\', jsonb_build_object('i', i, 's', 'x' || i, 'big', 12345678901234567890), now() - i * interval '1.000001 hour',
			decode(md5(i::text), 'hex'), ARRAY[i, NULL, -i], md5(i::text)::uuid, CASE i % 3 WHEN 0 THEN NULL ELSE i % 3 = 1 END, i * interval '1 day 1.5 seconds', date '2000-01-01' + i
		FROM generate_series(1, ` + rows + `) i`})
	res, err := s.tool.Run(t.Context(), s.call(fields{"query": "SELECT * FROM src"}))
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Rows json.RawMessage }
	if err := json.Unmarshal(res.Data, &out); err != nil {
		t.Fatal(err)
	}
	call := s.call(fields{"params": []any{nil}, "query": `
		INSERT INTO dst SELECT a, b, c, d, e, f, g, h, decode(i, 'base64'), j, k, l, m, n FROM jsonb_to_recordset($1) AS r (` + strings.Replace(columns, "i bytea", "i text", 1) + `);
		SELECT (SELECT count(*) FROM dst) AS n, (SELECT count(*) FROM (TABLE src EXCEPT TABLE dst) x) AS lost`})
	call.Ordered = func(string) (json.RawMessage, error) { return json.RawMessage("[" + string(out.Rows) + "]"), nil }
	res, err = s.tool.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{fields{"n": num(rows), "lost": num("0")}}, decode(t, res.Data)["rows"]); diff != "" {
		t.Error(diff)
	}
}

func TestNumericsOnDemand(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	const query = "SELECT 1.5::numeric AS a, 12345678901234567890.12::numeric AS b, 'NaN'::numeric AS c"
	for mode, want := range map[string]fields{
		"string": {"a": "1.5", "b": "12345678901234567890.12", "c": "NaN"},
		"number": {"a": num("1.5"), "b": num("12345678901234567890.12"), "c": "NaN"},
	} {
		if diff := cmp.Diff([]any{want}, s.run(fields{"query": query, "numeric": mode})["rows"]); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}

func TestSettingsOfASessionDoNotLoseValues(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	got := s.run(fields{"query": `SET bytea_output = 'escape'; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'postgres';
		SELECT '\x00ff5c'::bytea AS b, '2026-01-31 10:00:00+00'::timestamptz IS NOT NULL AS t, '1 day'::interval AS i`})
	want := []any{fields{"b": "AP9c", "t": true, "i": "1 day"}}
	if diff := cmp.Diff(want, got["rows"]); diff != "" {
		t.Error(diff)
	}
}

func TestParametersFollowTheTypesOfTheStatement(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	s.run(fields{"query": "CREATE TABLE t (id int4 PRIMARY KEY, small int2, doc jsonb, tags text[])"})
	s.run(fields{
		"query":  "INSERT INTO t VALUES (:id, :small, :doc, :tags); UPDATE t SET small = small + 1 WHERE id = :id",
		"params": fields{"id": 5.0, "small": "7", "doc": fields{"a": []any{int64(1)}}, "tags": []any{"x", "y z"}, "unused": true},
	})
	got := s.run(fields{"query": "SELECT * FROM t WHERE id = $2 AND $1 = 'x'", "params": []any{"x", int64(5)}})
	want := []any{fields{"id": num("5"), "small": num("8"), "doc": fields{"a": []any{num("1")}}, "tags": []any{"x", "y z"}}}
	if diff := cmp.Diff(want, got["rows"]); diff != "" {
		t.Error(diff)
	}
	for want, config := range map[string]fields{
		"parameter $1 must be integer, not this text":   {"query": "SELECT * FROM t WHERE id = $1", "params": []any{"canary"}},
		"parameter $1 must be integer, not this number": {"query": "SELECT * FROM t WHERE id = $1", "params": []any{1.5}},
		"parameter :i must be integer, not a list":      {"query": "SELECT * FROM t WHERE id = :i", "params": fields{"i": []any{"canary"}}},
		"parameter $1 must be date, not a map":          {"query": "SELECT $1::date", "params": []any{fields{"canary": true}}},
		"parameter $1 must be bytes in base64":          {"query": "SELECT $1::bytea", "params": []any{"canary!"}},
		"parameter $1 holds a zero byte":                {"query": "SELECT $1::text", "params": []any{"canary\x00"}},
		`invalid input syntax for type date: "$1"`:      {"query": "SELECT $1::date", "params": []any{"canary"}},
		"Key (id)=($1) already exists":                  {"query": "INSERT INTO t (id) VALUES ($1); INSERT INTO t (id) VALUES ($1)", "params": []any{int64(777777)}},
		"it has 1 parameters and params gives it 0":     {"query": "SELECT $1::int"},
	} {
		e := s.fail(config)
		if !strings.Contains(e.Message, want) || strings.Contains(e.Message, "canary") || strings.Contains(e.Message, "777777") || e.Retryable {
			t.Errorf("%v: message %q, want one with %q and without the value", config["query"], e.Message, want)
		}
	}
}
