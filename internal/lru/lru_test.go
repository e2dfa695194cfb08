package lru_test

import (
	"testing"

	"github.com/noetl/noetl-go/internal/lru"
)

func TestWhatWasUsedLongestAgoIsForgotten(t *testing.T) {
	t.Parallel()
	c := lru.New[string, int](2)
	c.Put("a", 1)
	c.Put("b", 2)
	c.Get("a")
	c.Update("c", func(v int) int { return v + 3 })
	if _, ok := c.Get("b"); ok || c.Len() != 2 {
		t.Errorf("b is still there among %d", c.Len())
	}
	c.Update("a", func(v int) int { return v + 10 })
	if v, ok := c.Get("a"); !ok || v != 11 {
		t.Errorf("a is %d, %v", v, ok)
	}
	c.DropFunc(func(k string, v int) bool { return k == "c" && v == 3 })
	c.Drop("none")
	if c.Len() != 1 {
		t.Errorf("%d are left", c.Len())
	}
	c.Drop("a")
	if _, ok := c.Get("a"); ok {
		t.Error("a is still there")
	}
}
