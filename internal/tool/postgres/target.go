package postgres

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/noetl/noetl-go/internal/tool"
)

// target is where to connect and as whom, by the names of libpq.
type target map[string]string

// Words of a connection string that would read files or settings of this
// machine on behalf of a playbook.
var foreign = []string{"passfile", "service", "servicefile", "krbspn", "krbsrvname"}

// readTarget joins, best first: fields of the step, its connection string, the
// fields of the credential and its connection string. There is no connection
// without any of them: nothing of this machine's environment is used.
func readTarget(call *tool.Call, f tool.Fields, login *tool.Credential) (target, error) {
	own, err := ownTarget(f)
	if err != nil {
		return nil, err
	}
	connection, err := f.String("connection", "connection_string")
	if err != nil {
		return nil, err
	}
	if err := own.add("connection", connection); err != nil {
		return nil, err
	}
	if login != nil {
		if err := own.addLogin(login); err != nil {
			return nil, err
		}
	}
	if len(own) == 0 || own["host"] == "" {
		return nil, tool.ConfigErrorf("no connection: set auth to a registered credential, or host (or connection)")
	}
	for word, def := range map[string]string{"port": "5432", "user": "postgres", "dbname": "postgres", "sslmode": "prefer"} {
		if own[word] == "" {
			own[word] = def
		}
	}
	if own["password"] != "" {
		call.Hidden(own["password"])
	}
	return own, nil
}

// ownTarget reads the fields that describe a connection.
func ownTarget(f tool.Fields) (target, error) {
	t := target{}
	var errs [6]error
	t["host"], errs[0] = f.String("host")
	t["port"], errs[1] = f.String("port")
	t["user"], errs[2] = f.String("user")
	t["password"], errs[3] = f.String("password")
	t["dbname"], errs[4] = f.String("database")
	t["sslmode"], errs[5] = f.String("sslmode")
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	t.tidy()
	return t, nil
}

func (t target) tidy() { maps.DeleteFunc(t, func(_, v string) bool { return v == "" }) }

// fill adds what is missing.
func (t target) fill(other target) {
	other.tidy()
	for k, v := range other {
		if t[k] == "" {
			t[k] = v
		}
	}
}

func (t target) add(field, connection string) error {
	if connection == "" {
		return nil
	}
	parsed, ok := parseConnection(connection)
	if !ok {
		return tool.ConfigErrorf("%s is no connection string; write postgres://user:password@host:port/database or host=… dbname=…", field)
	}
	for _, word := range foreign {
		if parsed[word] != "" {
			return tool.ConfigErrorf("%s: %s is not allowed, it would read what belongs to this machine", field, word)
		}
	}
	t.fill(parsed)
	return nil
}

// addLogin fills in what a credential knows. Where the step names the server,
// the credential still says who logs in.
func (t target) addLogin(login *tool.Credential) error {
	switch login.Type {
	case "", "postgres", "postgresql", "pg", "basic", "secret", "generic":
	default:
		return &tool.Error{
			Kind: tool.KindConfig, Code: "CONFIG",
			Message: fmt.Sprintf("credential %q is of type %s; postgres needs one of type postgres", login.Alias, login.Type),
		}
	}
	fields := target{}
	for word, name := range map[string]string{"host": "host", "port": "port", "user": "user", "password": "password", "dbname": "database", "sslmode": "sslmode"} {
		fields[word] = login.Text(tool.PostgresNames[name]...)
	}
	fields["sslrootcert"] = login.Text("sslrootcert", "ssl_root_cert", "ca_cert")
	fields["sslcert"] = login.Text("sslcert", "ssl_cert", "client_cert")
	fields["sslkey"] = login.Text("sslkey", "ssl_key", "client_key")
	t.fill(fields)
	return t.add("the connection string of the credential", login.Text(tool.PostgresNames["connection"]...))
}

// parseConnection reads both forms of a connection string.
func parseConnection(s string) (target, bool) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://") {
		return parseURL(s)
	}
	return parseWords(s)
}

func parseURL(s string) (target, bool) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, false
	}
	t := target{}
	if u.User != nil {
		t["user"] = u.User.Username()
		t["password"], _ = u.User.Password()
	}
	var hosts, ports []string
	for part := range strings.SplitSeq(u.Host, ",") {
		host, port, err := net.SplitHostPort(part)
		if err != nil {
			host, port = strings.Trim(part, "[]"), ""
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	t["host"] = strings.Join(hosts, ",")
	if joined := strings.Join(ports, ","); strings.Trim(joined, ",") != "" {
		t["port"] = joined
	}
	t["dbname"] = strings.TrimPrefix(u.Path, "/")
	for k, v := range u.Query() {
		t[canonical(k)] = v[len(v)-1]
	}
	return t, true
}

// parseWords reads host=… password='…'.
func parseWords(s string) (target, bool) {
	t := target{}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		key, rest, ok := strings.Cut(s, "=")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.ContainsAny(key, " \t\n'") {
			return nil, false
		}
		rest = strings.TrimLeft(rest, " \t\n")
		value, after, ok := wordValue(rest)
		if !ok {
			return nil, false
		}
		t[canonical(key)] = value
		s = after
	}
	return t, len(t) > 0
}

// wordValue reads a value, quoted or up to the next space; a backslash takes
// the next character as it is.
func wordValue(s string) (value, rest string, ok bool) {
	quoted := strings.HasPrefix(s, "'")
	if quoted {
		s = s[1:]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case quoted && c == '\'':
			return b.String(), s[i+1:], true
		case !quoted && strings.IndexByte(" \t\r\n", c) >= 0:
			return b.String(), s[i:], true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", !quoted
}

func canonical(word string) string {
	if word == "database" {
		return "dbname"
	}
	return word
}

// key identifies connections that may be shared. It is a hash, so that nothing
// that lists pools can tell a password.
func (t target) key(spec poolSpec) [sha256.Size]byte {
	b, err := json.Marshal([]any{map[string]string(t), spec})
	if err != nil {
		panic("postgres: pool key: " + err.Error())
	}
	return sha256.Sum256(b)
}

// config turns a target into the driver's settings. What the driver would take
// from the environment of this process is said explicitly or removed.
func (t target) config() (*pgconn.Config, error) {
	words := map[string]string{
		"passfile": "", "sslcert": "", "sslkey": "", "sslrootcert": "", "sslpassword": "", "sslsni": "1", "sslnegotiation": "postgres",
		"connect_timeout": "15", "target_session_attrs": "any", "min_protocol_version": "", "max_protocol_version": "",
		"channel_binding": "prefer", "require_auth": "", "password": "", "application_name": "noetl",
	}
	runtime := map[string]string{"application_name": "noetl"}
	for k, v := range t {
		switch _, known := words[k]; {
		case known, k == "host", k == "port", k == "user", k == "dbname", k == "sslmode":
			words[k] = v
		default:
			runtime[k] = v
		}
	}
	drop, err := certificates(words)
	defer drop()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for k, v := range words {
		if k == "application_name" {
			continue
		}
		fmt.Fprintf(&b, "%s='%s' ", k, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v))
	}
	cfg, err := pgconn.ParseConfig(b.String())
	if err != nil {
		return nil, tool.ConfigErrorf("the connection to PostgreSQL is described wrongly: %s", t.complaint(err))
	}
	cfg.RuntimeParams = runtime
	return cfg, nil
}

// complaint is the driver's opinion of the settings, without the settings.
func (t target) complaint(err error) string {
	switch t["sslmode"] {
	case "disable", "allow", "prefer", "require", "verify-ca", "verify-full":
	default:
		return fmt.Sprintf("sslmode %q is unknown; use disable, allow, prefer, require, verify-ca or verify-full", t["sslmode"])
	}
	for port := range strings.SplitSeq(t["port"], ",") {
		if n, convErr := strconv.Atoi(port); port != "" && (convErr != nil || n < 1 || n > 65535) {
			return "port must be a number from 1 to 65535"
		}
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return "check host, port, sslmode and the certificates"
}

// certificates puts those that are given as text into files for the driver,
// which reads nothing else; drop removes them.
func certificates(words map[string]string) (drop func(), err error) {
	var files []string
	drop = func() {
		for _, name := range files {
			os.Remove(name)
		}
	}
	for _, word := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if !strings.Contains(words[word], "-----BEGIN") {
			continue
		}
		file, err := os.CreateTemp("", "noetl-pem-")
		if err != nil {
			return drop, fmt.Errorf("keep a certificate: %w", err)
		}
		files = append(files, file.Name())
		_, err = file.WriteString(words[word])
		if err = errors.Join(err, file.Close()); err != nil {
			return drop, fmt.Errorf("keep a certificate: %w", err)
		}
		words[word] = file.Name()
	}
	return drop, nil
}

// poolSpec is how connections are shared.
type poolSpec struct {
	Name   string
	Single bool // a connection for this command alone
	Pool
}

// readPool reads pool: true, false or {name, min_size, …}.
func readPool(f tool.Fields, def Pool) (poolSpec, error) {
	_, v, ok := f.First("pool")
	if settings, isMap := v.(map[string]any); isMap {
		return readPoolSettings(settings, def)
	}
	spec := poolSpec{Pool: def}
	if ok {
		shared, err := f.Bool(true, "pool")
		spec.Single = !shared
		return spec, err
	}
	return spec, nil
}

func readPoolSettings(settings map[string]any, def Pool) (spec poolSpec, err error) {
	f := tool.Fields(settings)
	spec.Pool = def
	if spec.Name, err = f.String("name"); err != nil {
		return spec, err
	}
	for _, n := range []struct {
		name  string
		least int64
		most  int64
		into  *int
	}{{"min_size", 0, 100, &spec.Min}, {"max_size", 1, 1000, &spec.Max}, {"max_waiting", 0, 100_000, &spec.Waiting}} {
		_, v, ok := f.First(n.name)
		if !ok {
			continue
		}
		got, err := whole(v)
		if err != nil || got < n.least || got > n.most {
			return spec, tool.ConfigErrorf("pool.%s must be a whole number from %d to %d", n.name, n.least, n.most)
		}
		*n.into = int(got)
	}
	for name, into := range map[string]*time.Duration{"timeout": &spec.Timeout, "max_lifetime": &spec.Lifetime, "max_idle": &spec.Idle} {
		v := f[name]
		if v == nil {
			continue
		}
		if text, _ := tool.Text(v); name == "timeout" && strings.TrimSpace(text) == "-1" {
			*into = -1
			continue
		}
		if *into, err = tool.ParseDuration(v); err != nil {
			return spec, tool.ConfigErrorf("pool.%s: %v", name, err)
		}
	}
	if spec.Min > spec.Max {
		return spec, tool.ConfigErrorf("pool.min_size %d is above max_size %d", spec.Min, spec.Max)
	}
	return spec, nil
}
