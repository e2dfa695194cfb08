package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// form is how the text of a value is to be read.
type form int

const (
	plain form = iota // text as it is
	boolean
	integer
	float
	numeric
	document // json
	binary
	timestamp
	timestamptz
	array
	vector // numbers with spaces between
	composite
	domain
	hstore
	nothing // void
)

// kind is what is known of one type of a server.
type kind struct {
	name  string
	form  form
	elem  uint32 // of arrays, and what a domain is made of
	delim byte
	attrs []attribute // of composites
}

type attribute struct {
	name string
	oid  uint32
}

// The types that every server has under the same number.
var builtin = map[uint32]*kind{
	16: {name: "boolean", form: boolean}, 17: {name: "bytea", form: binary}, 18: {name: `"char"`}, 19: {name: "name"},
	20: {name: "bigint", form: integer}, 21: {name: "smallint", form: integer}, 23: {name: "integer", form: integer},
	26: {name: "oid", form: integer}, 28: {name: "xid", form: integer}, 29: {name: "cid", form: integer}, 5069: {name: "xid8", form: integer},
	22: {name: "int2vector", form: vector}, 30: {name: "oidvector", form: vector},
	25: {name: "text"}, 705: {name: "text"}, 1042: {name: "char"}, 1043: {name: "varchar"}, 142: {name: "xml"},
	114: {name: "json", form: document}, 3802: {name: "jsonb", form: document},
	700: {name: "real", form: float}, 701: {name: "double precision", form: float}, 1700: {name: "numeric", form: numeric},
	1082: {name: "date"}, 1083: {name: "time"}, 1266: {name: "timetz"}, 1186: {name: "interval"},
	1114: {name: "timestamp", form: timestamp}, 1184: {name: "timestamptz", form: timestamptz},
	2950: {name: "uuid"}, 869: {name: "inet"}, 650: {name: "cidr"}, 829: {name: "macaddr"}, 774: {name: "macaddr8"},
	1560: {name: "bit"}, 1562: {name: "varbit"}, 790: {name: "money"}, 2249: {name: "record"}, 2278: {name: "void", form: nothing},
}

// textual types take every JSON value, lists and maps as JSON text.
func textual(oid uint32) bool {
	switch oid {
	case 18, 19, 25, 705, 1042, 1043:
		return true
	}
	return false
}

// kinds remembers the types of one server that are not the same everywhere.
type kinds struct {
	known *knownKinds
}

type knownKinds struct {
	mu    sync.RWMutex
	byOID map[uint32]*kind
}

// maxKinds bounds what is remembered; a server with more is asked again.
const maxKinds = 10_000

func newKinds() kinds { return kinds{&knownKinds{byOID: map[uint32]*kind{}}} }

// get is what is known of a type; an unknown one is text.
func (k kinds) get(oid uint32) *kind {
	if b := builtin[oid]; b != nil {
		return b
	}
	k.known.mu.RLock()
	defer k.known.mu.RUnlock()
	if known := k.known.byOID[oid]; known != nil {
		return known
	}
	return &kind{name: "type " + strconv.FormatUint(uint64(oid), 10)}
}

// learn asks the server about types, and those they are made of, that are not
// known yet. Composites are asked for each time: ALTER TYPE changes them. It
// tells whether anything was asked.
func (k kinds) learn(ctx context.Context, pg *pgconn.PgConn, oids []uint32) (asked bool, err error) {
	seen := map[uint32]bool{0: true}
	for len(oids) > 0 {
		var ask, next []uint32
		for _, oid := range oids {
			if seen[oid] || builtin[oid] != nil {
				continue
			}
			seen[oid] = true
			k.known.mu.RLock()
			known := k.known.byOID[oid]
			k.known.mu.RUnlock()
			if known == nil || known.form == composite {
				ask = append(ask, oid)
			} else {
				next = append(next, known.elem)
			}
		}
		if len(ask) > 0 {
			asked = true
			found, err := askKinds(ctx, pg, ask)
			if err != nil {
				return asked, err
			}
			next = append(next, k.remember(found)...)
		}
		oids = next
	}
	return asked, nil
}

// remember keeps what was found, and gives the types it refers to.
func (k kinds) remember(found map[uint32]*kind) (refers []uint32) {
	k.known.mu.Lock()
	defer k.known.mu.Unlock()
	if len(k.known.byOID)+len(found) > maxKinds {
		clear(k.known.byOID)
	}
	for oid, one := range found {
		k.known.byOID[oid] = one
		refers = append(refers, one.elem)
		for _, a := range one.attrs {
			refers = append(refers, a.oid)
		}
	}
	return refers
}

const (
	kindsSQL = `SELECT t.oid, t.typname, t.typtype, t.typelem, t.typbasetype, t.typdelim, t.typinput::oid
FROM pg_catalog.pg_type t WHERE t.oid = ANY ($1::pg_catalog.oid[])`
	attributesSQL = `SELECT t.oid, a.attname, a.atttypid
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid
WHERE t.oid = ANY ($1::pg_catalog.oid[]) AND t.typtype = 'c' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY t.oid, a.attnum`
	arrayInput = "750" // the function array_in
)

func askKinds(ctx context.Context, pg *pgconn.PgConn, oids []uint32) (map[uint32]*kind, error) {
	list := make([]string, len(oids))
	for i, oid := range oids {
		list[i] = strconv.FormatUint(uint64(oid), 10)
	}
	arg := [][]byte{[]byte("{" + strings.Join(list, ",") + "}")}
	res := pg.ExecParams(ctx, kindsSQL, arg, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, fmt.Errorf("ask for types: %w", res.Err)
	}
	found := map[uint32]*kind{}
	composites := false
	for _, row := range res.Rows {
		one := readKind(row)
		found[oidOf(row[0])] = one
		composites = composites || one.form == composite
	}
	if !composites {
		return found, nil
	}
	res = pg.ExecParams(ctx, attributesSQL, arg, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, fmt.Errorf("ask for types: %w", res.Err)
	}
	for _, row := range res.Rows {
		one := found[oidOf(row[0])]
		one.attrs = append(one.attrs, attribute{string(row[1]), oidOf(row[2])})
	}
	return found, nil
}

func readKind(row [][]byte) *kind {
	one := &kind{name: string(row[1])}
	switch typtype := string(row[2]); {
	case typtype == "c":
		one.form = composite
	case typtype == "d":
		one.form, one.elem = domain, oidOf(row[4])
	case string(row[6]) == arrayInput:
		one.form, one.elem, one.delim = array, oidOf(row[3]), row[5][0]
	case typtype == "b" && one.name == "hstore":
		one.form = hstore
	}
	return one
}

func oidOf(text []byte) uint32 {
	n, _ := strconv.ParseUint(string(text), 10, 32)
	return uint32(n)
}
