package testapi

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
)

// listed is how many assessments, users and events there are.
const listed = 35

func assessment(id int) object {
	return object{"id": id, "name": fmt.Sprintf("Assessment %d", id), "score": 50 + id%50}
}

func user(id int) object {
	return object{"id": id, "name": fmt.Sprintf("User %d", id), "email": fmt.Sprintf("user%d@example.com", id)}
}

func happening(id int) object {
	return object{"id": id, "name": fmt.Sprintf("Event %d", id), "type": "test"}
}

// span is the part of 1…total from an offset on.
func span(offset, size, total int, item func(id int) object) []object {
	out := []object{}
	for id := max(offset, 0) + 1; id <= min(offset+size, total); id++ {
		out = append(out, item(id))
	}
	return out
}

func (s *Server) assessments(c *call) {
	c.answer(assessmentPage(c.whole("page", 1), c.whole("pageSize", 10)))
}

func assessmentPage(page, size int) object {
	return object{
		"data":   span((page-1)*size, size, listed, assessment),
		"paging": object{"hasMore": page*size < listed, "page": page, "pageSize": size, "total": listed},
	}
}

func (s *Server) users(c *call) {
	offset, limit := c.whole("offset", 0), c.whole("limit", 10)
	c.answer(object{
		"users": span(offset, limit, listed, user), "has_more": offset+limit < listed, "offset": offset, "limit": limit, "total": listed,
	})
}

// events are paged by a cursor. One that cannot be read means the first page.
func (s *Server) events(c *call) {
	limit, page := c.whole("limit", 10), 1
	if raw, err := base64.StdEncoding.DecodeString(c.text("cursor")); err == nil {
		if n, err := strconv.Atoi(string(raw)); err == nil {
			page = n
		}
	}
	var next any
	if page*limit < listed {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(page + 1)))
	}
	c.answer(object{"events": span((page-1)*limit, limit, listed, happening), "next_cursor": next, "limit": limit})
}

// flakyPage fails the first time that a chosen page is asked for.
func (s *Server) flakyPage(c *call) {
	page, size, failOn := c.whole("page", 1), c.whole("pageSize", 10), c.text("fail_on")
	if failOn == "" {
		failOn = c.text("failOn")
	}
	s.mu.Lock()
	s.flaky[page]++
	calls := s.flaky[page]
	s.mu.Unlock()
	if calls == 1 && chosen(failOn, page) {
		c.fail(http.StatusInternalServerError, "Simulated failure")
		return
	}
	c.answer(assessmentPage(page, size))
}

// chosen tells whether a list of pages names one; without a list it is the
// second.
func chosen(list string, page int) bool {
	if list == "" {
		list = "2"
	}
	for word := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(word) == strconv.Itoa(page) {
			return true
		}
	}
	return false
}

func (s *Server) flakyReset(c *call) {
	s.mu.Lock()
	s.flaky = map[int]int{}
	s.mu.Unlock()
	c.answer(object{"status": "reset"})
}

const heavyItems = 100

var categories = []string{"A", "B", "C", "D"}

func (s *Server) heavy(c *call) {
	page, size, kb := c.whole("page", 1), c.whole("pageSize", 10), c.whole("payload_kb", 10)
	items := span((page-1)*size, size, heavyItems, func(id int) object {
		item := assessment(id)
		item["category"], item["payload"] = categories[rand.IntN(len(categories))], noise(kb<<10)
		return item
	})
	c.answer(object{
		"data":   items,
		"paging": object{"hasMore": page*size < heavyItems, "page": page, "pageSize": size, "total": heavyItems},
		"meta":   object{"payload_kb_per_item": kb, "total_payload_kb": kb * len(items)},
	})
}

func (s *Server) heavyStats(c *call) {
	c.answer(object{"total_items": heavyItems, "categories": categories})
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func noise(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

const chainLongest = 20000

func record(id int) string { return fmt.Sprintf("record-%d", id) }

// chain is a list whose pages refer to their neighbours. A page beyond the end
// is the last one.
func (s *Server) chain(c *call) {
	total, size := min(max(c.whole("total", 382), 1), chainLongest), min(max(c.whole("pageSize", 25), 1), 200)
	kb, window := min(c.whole("payload_kb", 1), 256), c.whole("chain_window", 5)
	pages := (total + size - 1) / size
	page := min(max(c.whole("page", 1), 1), pages)
	mode := c.text("ref_mode")
	if mode == "" {
		mode = "linked"
	}
	items := span((page-1)*size, size, total, func(id int) object {
		return object{"record_id": id, "record_ref": record(id), "payload": strings.Repeat("x", kb<<10)}
	})
	c.answer(object{
		"data":   items,
		"paging": object{"hasMore": page < pages, "page": page, "pageSize": size, "total": total, "totalPages": pages},
		"refs":   object{"mode": mode, "chain": chainOf(mode, page, pages, window)},
	})
}

func chainOf(mode string, page, pages, window int) []string {
	first, last := max(page-1, 1), min(page+1, pages)
	switch mode {
	case "windowed":
		first, last = max(page-window, 1), min(page+window, pages)
	case "expanded":
		first, last = 1, page
	}
	out := []string{}
	for p := first; p <= last; p++ {
		if p != page || mode != "linked" {
			out = append(out, fmt.Sprintf("page-%d", p))
		}
	}
	return out
}

func (s *Server) chainDetail(c *call) {
	id, err := strconv.Atoi(c.r.PathValue("id"))
	switch {
	case err != nil:
		c.fail(http.StatusUnprocessableEntity, "id is not a number")
	case id == 0:
		c.fail(http.StatusNotFound, "Record not found")
	case id < 0 || id > chainLongest:
		c.fail(http.StatusBadRequest, "Record id out of range")
	default:
		c.answer(object{"record_id": id, "record_ref": record(id), "next_ref": record(id + 1)})
	}
}
