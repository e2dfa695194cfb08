package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/noetl/noetl-go/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv("NOETL_CONFIG") == "" { // the contexts of whoever runs the tests are none of theirs
		_ = os.Setenv("NOETL_CONFIG", filepath.Join(os.TempDir(), "noetl-test", "there", "is", "none.yaml"))
	}
	testscript.Main(sharing{m}, map[string]func(){
		"noetl": func() { os.Exit(Process(os.Args[1:])) },
	})
}

// TestScripts runs the command lines in testdata/script the way a person
// would, with what they print and how they exit. Set UPDATE_SCRIPTS to
// accept the present output.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NOETL_CONFIG", filepath.Join(e.WorkDir, ".noetl", "config.yaml"))
			e.Setenv("SERVER", served(t))
			e.Setenv("TMPDIR", e.WorkDir)
			e.Setenv("NOETL_ENCRYPTION_KEY", testkit.EncryptionKey)
			return nil
		},
	})
}
