//go:build duckdb

package duckdb_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/noetl/noetl-go/internal/tool/duckdb"
)

// TestMain lets the test binary stand for another process that holds a file.
func TestMain(m *testing.M) {
	if file := os.Getenv("DUCKDB_HOLD"); file != "" {
		if err := holdUntilInputEnds(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func holdUntilInputEnds(file string) error {
	hold, err := duckdb.NewFiles(duckdb.Options{Dir: os.TempDir()}).Acquire(context.Background(), file)
	if err != nil {
		return err
	}
	if _, err := hold.Connect(context.Background(), file); err != nil {
		return err
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

// holdInChild has another process open the file until release is called.
func holdInChild(t *testing.T, file string) (release func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "DUCKDB_HOLD="+file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the other process did not open the file: %v", err)
	}
	return func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
