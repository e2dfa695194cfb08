package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/store"
)

// Databases are those a server keeps its log in. Inspect looks at them without
// changing them.
type Databases struct {
	Inspect func(ctx context.Context) ([]store.Inspection, error)
	Remedy  string // when they cannot be reached
	Now     func() time.Time
	// Sealed, when given, checks that what is stored can be opened; see Keys.
	Sealed func(map[string]string) Finding
}

// Name implements Check.
func (Databases) Name() string { return "database" }

// Look implements Check.
func (d Databases) Look(ctx context.Context) []Finding {
	asked := d.Now()
	all, err := d.Inspect(ctx)
	found := []Finding{}
	sealed := map[string]string{}
	for _, in := range all {
		found = append(found, d.one(in, asked)...)
		for name, text := range in.Sealed {
			sealed[name] = text
		}
	}
	if err != nil {
		return append(found, failed("", d.Remedy, err))
	}
	if d.Sealed != nil && len(sealed) > 0 {
		found = append(found, d.Sealed(sealed))
	}
	return found
}

func (d Databases) one(in store.Inspection, asked time.Time) []Finding {
	as := ""
	if in.User != "" {
		as = " as " + in.User
	}
	found := []Finding{ok(in.Where, "%s answers%s", in.Software, as)}
	if len(in.Lacks) > 0 {
		found = append(found, fail(in.Where, rightsRemedy(in), "rights are missing: %s", few(in.Lacks)))
	}
	if len(in.NotOwned) > 0 {
		found = append(found, warn(in.Where, "ALTER TABLE … OWNER TO "+in.User+", or let the owner run noetl db init before each upgrade",
			"%s belong to another role, so that an upgrade cannot alter them: %s", count(len(in.NotOwned), "table"), few(in.NotOwned)))
	}
	found = append(found, schemaFinding(in))
	if !in.Clock.IsZero() {
		found = append(found, Skew("database", in.Where, in.Clock, asked, d.Now()))
	}
	return found
}

func rightsRemedy(in store.Inspection) string {
	if !in.Exists {
		return "GRANT CREATE ON DATABASE … TO " + in.User + ", or create the schema noetl for it"
	}
	return "GRANT ALL ON SCHEMA noetl TO " + in.User + "; GRANT ALL ON ALL TABLES IN SCHEMA noetl TO " + in.User
}

func schemaFinding(in store.Inspection) Finding {
	switch {
	case in.Schema != nil:
		return failed(in.Where, "use the program that wrote the database", in.Schema)
	case !in.Exists:
		return ok(in.Where, "it is empty; the first server makes the tables")
	case in.Applied < in.Known:
		return warn(in.Where, "start the new server, or run noetl db init, when no older server runs any more",
			"%s pending: the tables have version %d, this program wants %d", count(in.Known-in.Applied, "migration")+" "+are(in.Known-in.Applied), in.Applied, in.Known)
	}
	return ok(in.Where, "the tables have version %d, which this program wants", in.Applied)
}

// Clocks that differ by more are a reason to worry, or to stop.
const (
	skewWarn = 2 * time.Second
	skewFail = 30 * time.Second
)

// Skew compares a clock elsewhere with ours. It was read between asked and
// answered, so only what lies outside of that counts.
func Skew(whose, where string, theirs, asked, answered time.Time) Finding {
	var by time.Duration
	switch {
	case theirs.Before(asked):
		by = asked.Sub(theirs)
	case theirs.After(answered):
		by = theirs.Sub(answered)
	}
	remedy := "keep the clocks of all machines right, with chrony or ntpd"
	switch by = by.Round(time.Millisecond); {
	case by >= skewFail:
		return fail(where, remedy, "the clock of the %s differs from ours by %s: leases would end too early or too late", whose, by)
	case by >= skewWarn:
		return warn(where, remedy, "the clock of the %s differs from ours by %s", whose, by)
	}
	return ok(where, "the clock of the %s agrees with ours", whose)
}

// Opener opens what was encrypted; aad says what it belongs to.
type Opener interface {
	Open(aad, text string) ([]byte, error)
}

// Keys are those that credentials are encrypted with. Load finds them; Row is
// what a credential is bound to.
type Keys struct {
	Load func() (Opener, error)
	Row  func(name string) string
	// Absent tells that there is none yet and that a server would make one.
	Absent func() bool
	Where  string
}

// Name implements Check.
func (Keys) Name() string { return "encryption" }

// Look implements Check.
func (k Keys) Look(context.Context) []Finding {
	if k.Absent != nil && k.Absent() {
		return []Finding{ok(k.Where, "there is no key yet; the first server makes one")}
	}
	if _, err := k.Load(); err != nil {
		return []Finding{failed(k.Where, "set NOETL_ENCRYPTION_KEY; make one with: openssl rand -base64 32", err)}
	}
	return []Finding{ok(k.Where, "the encryption key is there and valid")}
}

// Opens tells whether stored credentials open with the keys.
func (k Keys) Opens(sealed map[string]string) Finding {
	if k.Absent != nil && k.Absent() {
		return fail(k.Where, "put back the key file that belongs to this database", "%s cannot be opened: the key is gone", count(len(sealed), "stored credential"))
	}
	keys, err := k.Load()
	if err != nil {
		return fail(k.Where, "set the key first", "whether stored credentials can be opened is unknown: there is no valid key")
	}
	var closed []string
	for name, text := range sealed {
		plain, err := keys.Open(k.Row(name), text)
		clear(plain)
		if err != nil {
			closed = append(closed, name)
		}
	}
	if len(closed) > 0 {
		slices.Sort(closed)
		return fail(k.Where, "start with the key they were written with, in NOETL_ENCRYPTION_KEYS beside the new one; then run noetl secrets rotate",
			"%d of %s cannot be opened with this key: %s", len(closed), count(len(sealed), "stored credential"), few(closed))
	}
	return ok(k.Where, "%s opened with the key", count(len(sealed), "stored credential"))
}

// few lists the first of many.
func few(list []string) string {
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
