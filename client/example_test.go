package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/event"
)

func Example() {
	srv := httptest.NewServer(handler(&apitest.Plane{}))
	defer srv.Close()
	ctx := context.Background()

	c, err := client.New(srv.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	reg, err := c.Register(ctx, "kind: Playbook\nmetadata:\n  path: demo/hello\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := c.Execute(ctx, client.ExecuteRequest{Path: reg.Path, Payload: json.RawMessage(`{"name":"world"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reg.Message)
	fmt.Println(run.Status)
	// Output:
	// Resource 'demo/hello' version '1' registered.
	// started
}

func ExampleClient_Stream() {
	plane := running(42, 0)
	plane.Append(42, event.Event{Type: event.PlaybookStarted}, event.Event{Type: event.PlaybookCompleted})
	srv := httptest.NewServer(handler(plane))
	defer srv.Close()

	c, err := client.New(srv.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	err = c.Stream(context.Background(), 42, 0, func(e client.Event) error {
		fmt.Println(e.Seq, e.Type)
		return nil
	})
	fmt.Println("ended:", err)
	// Output:
	// 1 playbook_started
	// 2 playbook.completed
	// ended: <nil>
}

func ExampleClient_Wait() {
	plane := running(42, 0)
	plane.Append(42, event.Event{Type: event.PlaybookCompleted})
	srv := httptest.NewServer(handler(plane))
	defer srv.Close()

	c, err := client.New(srv.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	st, err := c.Wait(context.Background(), 42)
	fmt.Println(st.Status, err)

	_, err = c.Wait(context.Background(), 43)
	fmt.Println(err, errors.Is(err, &client.Error{Code: client.NotFound}))
	// Output:
	// COMPLETED <nil>
	// Execution not found: 43 true
}
