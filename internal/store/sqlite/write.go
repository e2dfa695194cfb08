package sqlite

import "context"

// writeOp is a write that is not worth a type of its own.
type writeOp struct {
	bytes int
	run   func(w *writer) error
}

func (o *writeOp) size() int { return o.bytes }

func (o *writeOp) apply(w *writer) error {
	if err := w.flush(); err != nil {
		return err
	}
	return o.run(w)
}

// write runs a function with the writer, in a transaction with others. It may
// be run a second time, so what it hands out must be set anew by each run.
func (s *Store) write(ctx context.Context, bytes int, run func(w *writer) error) error {
	return s.queue.Submit(ctx, &writeOp{64 + bytes, run})
}

// change is a write of one statement that tells how many rows it changed.
func (s *Store) change(ctx context.Context, doing, text string, bind func(*statement)) (int, error) {
	changed := 0
	err := s.write(ctx, 0, func(w *writer) error {
		n, err := w.change(text, bind)
		changed = int(n)
		return coded(doing, err)
	})
	if err != nil {
		return 0, err
	}
	return changed, nil
}

func (w *writer) change(text string, bind func(*statement)) (int64, error) {
	st, err := w.seldom(text)
	if err != nil {
		return 0, err
	}
	bind(st)
	n, err := st.exec()
	st.forget()
	return n, err
}

// returning runs a statement that yields rows and collects them.
func returning[T any](w *writer, text string, bind func(*statement), scan func(scanner, *T) error) ([]T, error) {
	st, err := w.seldom(text)
	if err != nil {
		return nil, err
	}
	bind(st)
	var out []T
	err = st.rows(func(row scanner) error {
		var v T
		if err := scan(row, &v); err != nil {
			return err
		}
		out = append(out, v)
		return nil
	})
	st.forget()
	return out, err
}

// writeReturning is a write of one statement that yields the rows it changed.
func writeReturning[T any](ctx context.Context, s *Store, doing, text string, bind func(*statement), scan func(scanner, *T) error) ([]T, error) {
	var out []T
	err := s.write(ctx, 0, func(w *writer) error {
		var err error
		out, err = returning(w, text, bind, scan)
		return coded(doing, err)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
