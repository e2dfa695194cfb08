package groupcommit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/store/groupcommit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is a commit function that lets a test look at each group and decide
// when it is done.
type gate struct {
	entered chan []int
	release chan error
}

func newGate() *gate { return &gate{entered: make(chan []int), release: make(chan error)} }

func (g *gate) commit(group []int, errs []error) {
	g.entered <- append([]int(nil), group...)
	if err := <-g.release; err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
}

func TestALoneItemIsCommittedAtOnce(t *testing.T) {
	t.Parallel()
	var got []int
	q := groupcommit.New(groupcommit.Config[int]{Commit: func(group []int, _ []error) { got = append(got, group...) }})
	if err := q.Submit(t.Context(), 7); err != nil {
		t.Fatalf("Submit: %v", err)
	}
	q.Close()
	if diff := cmp.Diff([]int{7}, got); diff != "" {
		t.Errorf("committed (-want +got):\n%s", diff)
	}
	if groups, items := q.Stats(); groups != 1 || items != 1 {
		t.Errorf("Stats() = %d, %d, want 1, 1", groups, items)
	}
}

func TestItemsThatWaitDuringACommitShareTheNextOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		q := groupcommit.New(groupcommit.Config[int]{Commit: g.commit})
		var wg sync.WaitGroup
		wg.Go(func() { _ = q.Submit(t.Context(), 0) })
		<-g.entered
		for i := 1; i <= 5; i++ {
			wg.Go(func() { _ = q.Submit(t.Context(), i) })
		}
		synctest.Wait()
		g.release <- nil
		if next := <-g.entered; len(next) != 5 {
			t.Errorf("second group has %d items, want 5", len(next))
		}
		g.release <- nil
		wg.Wait()
		q.Close()
	})
}

func TestAGroupIsBoundedByItemsAndBytes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  groupcommit.Config[int]
		want []int // sizes of the groups after the first
	}{
		"items": {groupcommit.Config[int]{MaxItems: 2}, []int{2, 2, 1}},
		"bytes": {groupcommit.Config[int]{MaxBytes: 30, Size: func(int) int { return 10 }}, []int{3, 2}},
		"one item above the limit still goes through": {groupcommit.Config[int]{MaxBytes: 1, Size: func(int) int { return 10 }}, []int{1, 1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				c.cfg.Commit = g.commit
				q := groupcommit.New(c.cfg)
				var wg sync.WaitGroup
				wg.Go(func() { _ = q.Submit(t.Context(), 0) })
				<-g.entered
				for i := 1; i <= 5; i++ {
					wg.Go(func() { _ = q.Submit(t.Context(), i) })
				}
				synctest.Wait()
				var sizes []int
				for range c.want {
					g.release <- nil
					sizes = append(sizes, len(<-g.entered))
				}
				g.release <- nil
				wg.Wait()
				q.Close()
				if diff := cmp.Diff(c.want, sizes); diff != "" {
					t.Errorf("group sizes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestARefusedItemFailsOnlyItsOwnCaller(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	q := groupcommit.New(groupcommit.Config[int]{Commit: func(group []int, errs []error) {
		for i, n := range group {
			if n%2 == 1 {
				errs[i] = fmt.Errorf("item %d: %w", n, odd)
			}
		}
	}})
	defer q.Close()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			err := q.Submit(t.Context(), i)
			if refused := errors.Is(err, odd); refused != (i%2 == 1) {
				t.Errorf("Submit(%d) = %v", i, err)
			}
		})
	}
	wg.Wait()
}

func TestACallerWhoseContextEndsStopsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		q := groupcommit.New(groupcommit.Config[int]{Commit: g.commit, Capacity: 1})
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		submit := func() {
			if err := q.Submit(ctx, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("Submit = %v, want context.Canceled", err)
			}
		}
		wg.Go(submit) // in the commit
		<-g.entered
		wg.Go(submit) // in the queue
		wg.Go(submit) // before the full queue
		synctest.Wait()
		cancel()
		wg.Wait()
		g.release <- nil
		<-g.entered // the abandoned item in the queue is committed all the same
		g.release <- nil
		q.Close()
	})
}

func TestCloseDrainsAndThenRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		q := groupcommit.New(groupcommit.Config[int]{Commit: g.commit})
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				if err := q.Submit(t.Context(), i); err != nil {
					t.Errorf("Submit(%d) before Close = %v", i, err)
				}
			})
		}
		<-g.entered
		synctest.Wait()
		closed := make(chan struct{})
		go func() { q.Close(); close(closed) }()
		synctest.Wait()
		if err := q.Submit(t.Context(), 9); !errors.Is(err, groupcommit.ErrClosed) {
			t.Errorf("Submit after Close = %v, want ErrClosed", err)
		}
		go func() {
			for range g.entered {
				g.release <- nil
			}
		}()
		g.release <- nil
		<-closed
		wg.Wait()
		q.Close()
		close(g.entered)
	})
}

func BenchmarkSubmit(b *testing.B) {
	q := groupcommit.New(groupcommit.Config[int]{Commit: func([]int, []error) {}})
	defer q.Close()
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = q.Submit(context.Background(), 1)
		}
	})
}
