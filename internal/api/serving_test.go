package api_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/control"
)

// serve runs the API over a control plane until the test ends, which closes the
// plane's bus and store too.
func serve(t *testing.T, co control.Options, ao api.Options) (*httptest.Server, *control.Plane) {
	t.Helper()
	plane, err := control.New(co)
	if err != nil {
		t.Fatal(err)
	}
	ao.Plane = plane
	s, err := api.New(ao)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- plane.Run(ctx) }()
	srv := httptest.NewServer(checked(t, s))
	t.Cleanup(func() {
		srv.Close()
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		_ = co.Bus.Close()
		_ = co.Store.Close()
	})
	return srv, plane
}
