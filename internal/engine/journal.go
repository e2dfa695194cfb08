package engine

// Begin starts a tentative stretch: until Commit or Rollback every change to
// the state can be taken back. A conflict on append then costs the few events
// that others wrote, not a fold of the whole log.
func (s *State) Begin() {
	s.journaling = true
	s.epoch++
	s.saved = s.head
	s.undo = s.undo[:0]
}

// Commit keeps what happened since Begin.
func (s *State) Commit() {
	s.journaling = false
	clear(s.undo)
	s.undo = s.undo[:0]
}

// Rollback takes back what happened since Begin.
func (s *State) Rollback() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.head = s.saved
	s.Commit()
}

// put sets a map entry, remembering the old one.
func put[K comparable, V any](s *State, m map[K]V, k K, v V) {
	if s.journaling {
		old, had := m[k]
		s.undo = append(s.undo, func() {
			if had {
				m[k] = old
			} else {
				delete(m, k)
			}
		})
	}
	m[k] = v
}

// drop removes a map entry, remembering it.
func drop[K comparable, V any](s *State, m map[K]V, k K) {
	old, had := m[k]
	if !had {
		return
	}
	if s.journaling {
		s.undo = append(s.undo, func() { m[k] = old })
	}
	delete(m, k)
}

// at sets a slice element, remembering the old one.
func at[T any](s *State, sl []T, i int, v T) {
	if s.journaling {
		old := sl[i]
		s.undo = append(s.undo, func() { sl[i] = old })
	}
	sl[i] = v
}

// remember keeps a copy of v before its first change in this stretch; epoch is
// v's own note of when that was.
func remember[T any](s *State, v *T, epoch *uint64) *T {
	if s.journaling && *epoch != s.epoch {
		old := *v
		s.undo = append(s.undo, func() { *v = old })
		*epoch = s.epoch
	}
	return v
}

// touch, touchStep and touchCommand announce a change.
func (s *State) touch(r *run) *run                { return remember(s, r, &r.epoch) }
func (s *State) touchStep(st *step) *step         { return remember(s, st, &st.epoch) }
func (s *State) touchCommand(c *Command) *Command { return remember(s, c, &c.epoch) }
