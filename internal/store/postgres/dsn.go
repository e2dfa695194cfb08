package postgres

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
)

// dsnKeys are the words of an address of the form key=value;key=value, with
// the names PostgreSQL has for them.
var dsnKeys = map[string]string{
	"host": "host", "port": "port", "user": "user", "password": "password", "database": "dbname", "dbname": "dbname",
	"sslmode": "sslmode", "sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey", "connect_timeout": "connect_timeout",
}

// ParseShards reads a list of databases separated by commas. A broken entry is
// refused by its number; what it holds is not repeated, it may be a password.
func ParseShards(setting, list string) ([]string, error) {
	var out []string
	for i, entry := range strings.Split(list, ",") {
		name := fmt.Sprintf("entry %d of %s", i+1, setting)
		dsn, err := ParseDSN(name, entry)
		if err != nil {
			return nil, err
		}
		for j, other := range out {
			if sameDatabase(dsn, other) {
				return nil, invalidDSN(name, fmt.Sprintf("names the same database as entry %d", j+1))
			}
		}
		out = append(out, dsn)
	}
	return out, nil
}

// ParseDSN reads the address of one database, a URL or words separated by
// semicolons, and returns it as the driver takes it. name is how errors call it.
func ParseDSN(name, text string) (string, error) {
	text = strings.TrimSpace(text)
	var err error
	switch {
	case text == "":
		return "", invalidDSN(name, "is blank")
	case strings.Contains(text, "://"):
		err = checkURL(name, text)
	default:
		text, err = fromWords(name, text)
	}
	if err != nil {
		return "", err
	}
	if _, err := pgx.ParseConfig(text); err != nil {
		return "", invalidDSN(name, "cannot be read")
	}
	return text, nil
}

func invalidDSN(name, what string) error {
	return &event.Error{
		Code: event.Invalid, Message: name + " " + what,
		Remedy: "use host=…;port=…;user=…;password=…;database=… or postgres://user:password@host:port/database, where a comma is written %2C",
	}
}

func checkURL(name, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return invalidDSN(name, "is no URL")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return invalidDSN(name, "does not begin with postgres://")
	case u.Host == "" && u.Query().Get("host") == "":
		return invalidDSN(name, "has no host")
	case strings.Trim(u.Path, "/") == "" && u.Query().Get("dbname") == "" && u.Query().Get("database") == "":
		return invalidDSN(name, "has no database")
	}
	return nil
}

// fromWords turns key=value;key=value into what the driver reads.
func fromWords(name, text string) (string, error) {
	values := map[string]string{}
	for _, word := range strings.Split(text, ";") {
		key, value, found := strings.Cut(word, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		known, ok := dsnKeys[key]
		switch {
		case strings.TrimSpace(word) == "":
			continue // a semicolon at the end
		case !found:
			return "", invalidDSN(name, "has a word without =")
		case !ok:
			return "", invalidDSN(name, fmt.Sprintf("has the unknown key %s", shortened(key)))
		case values[known] != "":
			return "", invalidDSN(name, "has the key "+key+" twice")
		case value == "" && known != "password":
			return "", invalidDSN(name, "has a blank "+key)
		}
		values[known] = value
	}
	for _, key := range []string{"host", "user", "dbname"} {
		if values[key] == "" {
			return "", invalidDSN(name, "has no "+strings.Replace(key, "dbname", "database", 1))
		}
	}
	if port, ok := values["port"]; ok {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", invalidDSN(name, "has a port that is no number from 1 to 65535")
		}
	}
	return Words(values), nil
}

// shortened bounds a key shown in a message: the tail of a password that holds
// a semicolon looks like one.
func shortened(key string) string {
	if len(key) > 3 {
		return strconv.Quote(key[:3]) + "…"
	}
	return strconv.Quote(key)
}

// Words writes an address as the driver reads it: key='value' in order.
func Words(values map[string]string) string {
	var words []string
	for key, value := range values {
		words = append(words, key+"='"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value)+"'")
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// sameDatabase tells whether two addresses name one database, however they
// are written.
func sameDatabase(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := pgx.ParseConfig(a)
	y, errY := pgx.ParseConfig(b)
	return errX == nil && errY == nil && strings.EqualFold(x.Host, y.Host) && x.Port == y.Port && x.Database == y.Database
}
