package corpus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/testkit/testapi"
)

// password is one that the test server of PostgreSQL does not ask for.
const password = "scratch"

// surroundings are what all entries share.
type surroundings struct {
	postgres string // URL of a database of the server
	nats     string
	static   string
	python   string // directory of an interpreter with psycopg; "" when there is none
	noPython error  // why
	noDuckDB error  // why the program has none
	made     atomic.Int64
}

func surround(t *testing.T) *surroundings {
	t.Helper()
	files := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(fixtures, "static"))))
	t.Cleanup(files.Close)
	s := &surroundings{postgres: testkit.Postgres(t), nats: testkit.NATSProcess(t), static: files.URL}
	s.python, s.noPython = pythonWithPsycopg(t.Context())
	return s
}

// program builds what is tested: with DuckDB where a C compiler can link it.
func (s *surroundings) program(t *testing.T) string {
	t.Helper()
	cc, err := exec.CommandContext(t.Context(), "go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, s.noDuckDB = exec.LookPath(strings.TrimSpace(string(cc))); s.noDuckDB != nil {
		return testkit.BuildNoetl(t)
	}
	return testkit.BuildNoetlComplete(t)
}

// pythonWithPsycopg finds an interpreter that has psycopg, or makes one in the
// user's cache, where the next run finds it.
func pythonWithPsycopg(ctx context.Context) (dir string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	const check = "import psycopg"
	if found, err := exec.LookPath("python3"); err == nil && exec.CommandContext(ctx, found, "-c", check).Run() == nil {
		return filepath.Dir(found), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "noetl-test", "psycopg-3.2")
	bin := filepath.Join(home, "bin")
	if exec.CommandContext(ctx, filepath.Join(bin, "python3"), "-c", check).Run() == nil {
		return bin, nil
	}
	for _, line := range [][]string{
		{"python3", "-m", "venv", "--clear", home},
		{filepath.Join(bin, "python3"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "psycopg[binary]==3.2.*"},
	} {
		if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
			said := strings.Split(strings.TrimSpace(string(out)), "\n")
			return "", fmt.Errorf("install psycopg: %w: %s", err, said[len(said)-1])
		}
	}
	return bin, nil
}

// scene is what one entry has for itself.
type scene struct {
	db      *pgx.ConnConfig
	dsn     string
	api     *testapi.Server
	places  *strings.Replacer
	began   int // requests before the entry
	closers []func() error
}

// scene makes a database and a test server.
func (s *surroundings) scene(ctx context.Context, lane *lane) (_ *scene, err error) {
	sc := &scene{api: testapi.New(testapi.Options{RateLimit: -1, Company: 10 * time.Second})}
	srv := httptest.NewServer(sc.api)
	sc.closers = append(sc.closers, func() error { srv.Close(); return nil })
	defer func() {
		if err != nil {
			err = errors.Join(err, sc.close())
		}
	}()
	name := fmt.Sprintf("corpus_%d", s.made.Add(1))
	if err := perform(ctx, s.postgres, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	sc.closers = append(sc.closers, func() error {
		return perform(context.WithoutCancel(ctx), s.postgres, "DROP DATABASE "+name+" WITH (FORCE)")
	})
	u, err := url.Parse(s.postgres)
	if err != nil {
		return nil, err
	}
	u.Path = "/" + name
	sc.dsn = u.String()
	if sc.db, err = pgx.ParseConfig(sc.dsn); err != nil {
		return nil, err
	}
	sc.places = strings.NewReplacer("<TEST_API>", srv.URL, "<STATIC>", s.static, "<SERVER>", lane.url,
		"<PGHOST>", sc.db.Host, "<PGPORT>", strconv.Itoa(int(sc.db.Port)), "<DB>", name, "<USER>", sc.db.User, "<PASSWORD>", password)
	return sc, nil
}

func (sc *scene) close() (err error) {
	for _, c := range sc.closers {
		err = errors.Join(err, c())
	}
	return err
}

// perform runs statements that return nothing.
func perform(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// credentials are those that the playbooks name. All databases are that of the
// scene but the engine's own.
func (s *surroundings) credentials(sc *scene, engine *pgx.ConnConfig) (list []client.CredentialRequest) {
	add := func(name, kind string, data map[string]any) {
		raw, _ := json.Marshal(data)
		list = append(list, client.CredentialRequest{Name: name, Type: kind, Data: raw})
	}
	database := func(name string, c *pgx.ConnConfig) {
		add(name, "postgres", map[string]any{
			"db_host": c.Host, "db_port": int(c.Port), "db_user": c.User, "db_password": password, "db_name": c.Database,
		})
	}
	for _, name := range []string{"pg_k8s", "pg_local", "pg_auth", "pg_trade", "test_postgres", "pg_tutorial"} {
		database(name, sc.db)
	}
	if engine == nil {
		engine = sc.db
	}
	database("pg_noetl_k8s", engine)
	for _, name := range []string{"nats_credential", "nats_e2e"} {
		add(name, "nats", map[string]any{"nats_url": s.nats})
	}
	add("webhook_hmac_secret", "secret", map[string]any{"value": "hmac"})
	add("hook_bearer_token", "bearer", map[string]any{"token": "bearer"})
	return list
}
