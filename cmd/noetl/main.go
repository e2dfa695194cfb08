// Command noetl is the whole of NoETL: server, worker, local runner and client.
package main

import (
	"os"

	"github.com/noetl/noetl-go/internal/cli"
)

func main() {
	os.Exit(cli.Process(os.Args[1:]))
}
