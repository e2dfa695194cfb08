// Package storeproof lets every test end with the proof that what it left in a store
// is what the log says: no gaps, one end, projections equal to the fold, every
// reference resolvable, and the same by replay. It must not know how the test
// came to that store.
package storeproof

import (
	"context"
	"slices"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/store"
)

// Clean fails the test with the first difference between the log and what
// stands beside it. Differences of the kinds in except are what the test is
// about and do not count.
func Clean(t testing.TB, db store.Store, except ...string) control.VerifyReport {
	t.Helper()
	r, err := control.Verify(context.WithoutCancel(t.Context()), control.VerifyOptions{Store: db})
	if err != nil {
		t.Errorf("verify the store: %v", err)
		return r
	}
	for _, d := range r.Differences {
		if !slices.Contains(except, d.What) {
			t.Errorf("the store is not what its log says: %s", d)
			return r
		}
	}
	return r
}
