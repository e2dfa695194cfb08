package corpus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/testkit"
)

// lane is a server with its worker, on which one entry runs after the other.
type lane struct {
	*testkit.Process
	client *client.Client
	url    string
	engine *pgx.ConnConfig // its own database; nil when that is no PostgreSQL
}

// openLane starts a server, on PostgreSQL when it gets a URL.
func openLane(t *testing.T, noetl string, s *surroundings, dsn string) *lane {
	t.Helper()
	args := []string{"server", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir()}
	env := []string{"NOETL_ENCRYPTION_KEY=" + testkit.EncryptionKey}
	if s.python != "" {
		env = append(env, "PATH="+s.python+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	l := &lane{}
	if dsn != "" {
		args = append(args, "--database-url", dsn)
		engine, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		l.engine = engine
	}
	l.Process = testkit.Start(t, testkit.Command{Path: noetl, Args: args, Env: env})
	return l
}

// ready waits until the server answers.
func (l *lane) ready(t *testing.T) {
	t.Helper()
	line := l.WaitOutput(": http://", time.Minute)
	l.url = "http://" + strings.Fields(line)[0]
	c, err := client.New(l.url, client.WithTimeout(bound))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	l.client = c
}

// shut holds everything that was stored against the log and ends the server in
// good order.
func (l *lane) shut(t *testing.T) {
	t.Helper()
	raw, err := l.client.VerifyDatabase(t.Context(), 0)
	if err != nil {
		t.Errorf("verify the store: %v", err)
	}
	var r control.VerifyReport
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Errorf("read the report of the store: %v", err)
	}
	if err == nil && !r.Clean {
		t.Errorf("the store is not what its log says: %s", r.Differences[0])
	}
	l.Terminate()
	if err := l.Wait(time.Minute); err != nil {
		t.Errorf("stop the server: %v", err)
	}
}

// furnish lets the lane's playbooks see the scene.
func (l *lane) furnish(ctx context.Context, s *surroundings, sc *scene) error {
	for _, c := range s.credentials(sc, l.engine) {
		if _, err := l.client.PutCredential(ctx, c); err != nil {
			return fmt.Errorf("credential %s: %w", c.Name, err)
		}
	}
	return nil
}

// register puts a document and everything that it calls into the catalog.
func (l *lane) register(ctx context.Context, s *shelf, doc *document) (client.Registration, error) {
	for name, child := range s.called(doc) {
		// One that is refused is missing for who calls it, which says so.
		if _, err := l.client.Register(ctx, child.as(name)); err != nil && !refusal(err) {
			return client.Registration{}, fmt.Errorf("register %s: %w", name, err)
		}
	}
	return l.client.Register(ctx, doc.src)
}

// refusal tells whether a server had something against a document.
func refusal(err error) bool {
	code := client.CodeOf(err)
	return code == client.Invalid || code == client.BadRequest
}
