// Command natsd is a NATS server with JetStream for tests that need the broker
// in a process of its own, to kill it or to reach it from several processes.
// It prints its client URL on standard output and ends when standard input
// closes. It must not know the product.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1", "address to listen on")
	port := flag.Int("port", 0, "port to listen on; 0 chooses a free one")
	store := flag.String("store", "", "directory of the JetStream file store")
	flag.Parse()
	if err := run(*addr, *port, *store, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
}

func run(addr string, port int, store string, stdin io.Reader, stdout io.Writer) error {
	if store == "" {
		return errors.New("-store is required")
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "natsd", Host: addr, Port: port,
		JetStream: true, StoreDir: store, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return fmt.Errorf("configure server: %w", err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the server is not ready")
	}
	fmt.Fprintln(stdout, "url:", s.ClientURL())
	if _, err := io.Copy(io.Discard, stdin); err != nil {
		return fmt.Errorf("wait for standard input to close: %w", err)
	}
	return nil
}
