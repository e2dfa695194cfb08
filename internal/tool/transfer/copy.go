package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/noetl/noetl-go/internal/tool"
)

// progress is how far a transfer came.
type progress struct {
	log       io.Writer
	target    string
	columns   []string
	rows      int64
	chunks    int64
	told      int64
	committed int64
	partial   bool         // what is committed stays, whatever happens later
	stored    *tool.Stored // of the target result
}

// kept adds to an error how much of a transfer with checkpoints stays.
func (d *progress) kept(err error) error {
	if !d.partial {
		return err
	}
	out := tool.Error{Kind: tool.KindInternal, Message: err.Error()}
	if known, ok := errors.AsType[*tool.Error](err); ok {
		out = *known
	}
	out.Message += fmt.Sprintf(" (%d rows of earlier chunks are in the target)", d.committed)
	out.Details = map[string]any{"rows_transferred": d.committed}
	return &out
}

// tellEvery is how many rows pass between two lines of progress.
const tellEvery = 50_000

func (d *progress) tell(end bool) {
	if !end && d.rows-d.told < tellEvery {
		return
	}
	d.told = d.rows
	fmt.Fprintf(d.log, "%d rows into %s\n", d.rows, d.target)
}

// copyRows moves the rows. The first chunk of a source without columns is read
// before the target is touched: it shows what columns there are.
func copyRows(ctx context.Context, p *plan, src source, dst target, done *progress) error {
	done.target = dst.name()
	first, ended, err := firstChunk(ctx, p, src)
	if err != nil {
		return during("read the source", err)
	}
	l, err := newLayout(p, src.columns(), dst.columns(), first)
	if err != nil {
		return err
	}
	cols := l.columns()
	done.columns = namesOf(cols)
	if err := dst.begin(ctx, cols); err != nil {
		return during("prepare the target", err)
	}
	c := &copier{plan: p, dst: dst, layout: l, done: done, row: make([]any, len(cols))}
	for _, r := range first {
		if err := c.take(ctx, r); err != nil {
			return err
		}
	}
	for !ended {
		r, err := src.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return during("read the source", err)
		}
		if err := c.take(ctx, r); err != nil {
			return err
		}
	}
	return c.finish(ctx)
}

func firstChunk(ctx context.Context, p *plan, src source) (first []record, ended bool, err error) {
	if src.columns() != nil {
		return nil, false, nil
	}
	for range p.chunk {
		r, err := src.next(ctx)
		if errors.Is(err, io.EOF) {
			return first, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		first = append(first, r)
	}
	return first, false, nil
}

// copier writes rows and ends chunks.
type copier struct {
	plan    *plan
	dst     target
	layout  *layout
	done    *progress
	row     []any
	inChunk int
}

func (c *copier) take(ctx context.Context, r record) error {
	if err := c.layout.row(r, c.row); err != nil {
		return during(fmt.Sprintf("row %d", c.done.rows+1), err)
	}
	if err := c.dst.write(ctx, c.row); err != nil {
		return during("write to "+c.done.target, err)
	}
	c.done.rows++
	if c.inChunk++; c.inChunk < c.plan.chunk {
		return nil
	}
	return c.endChunk(ctx)
}

func (c *copier) endChunk(ctx context.Context) error {
	c.inChunk = 0
	c.done.chunks++
	c.done.tell(false)
	if err := ctx.Err(); err != nil {
		return err
	}
	if !c.plan.checkpoint {
		return nil
	}
	if err := c.commit(ctx); err != nil {
		return err
	}
	c.done.partial = true
	if err := c.dst.begin(ctx, c.layout.columns()); err != nil {
		return during("prepare the target", err)
	}
	return nil
}

func (c *copier) finish(ctx context.Context) error {
	if c.inChunk > 0 {
		c.done.chunks++
	}
	if err := c.commit(ctx); err != nil {
		return err
	}
	if kept, ok := c.dst.(interface{ result() *tool.Stored }); ok {
		c.done.stored = kept.result()
	}
	c.done.tell(true)
	return nil
}

func (c *copier) commit(ctx context.Context) error {
	if err := c.dst.commit(ctx); err != nil {
		return during("write to "+c.done.target, err)
	}
	c.done.committed = c.done.rows
	return nil
}
