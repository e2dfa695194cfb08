package testapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/testkit/testapi"
)

func get(t *testing.T, url string) (int, map[string]any, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatalf("%s: %v in %s", url, err, raw)
	}
	return resp.StatusCode, body, resp.Header
}

func status(t *testing.T, url string) int {
	t.Helper()
	code, _, _ := get(t, url)
	return code
}

func TestPagesEndAndRefuse(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t, testapi.Options{})
	var sizes []int
	for page := 1; page <= 5; page++ {
		_, body, _ := get(t, fmt.Sprintf("%s/api/v1/assessments?page=%d", s.URL, page))
		sizes = append(sizes, len(body["data"].([]any)))
	}
	if diff := cmp.Diff([]int{10, 10, 10, 5, 0}, sizes); diff != "" {
		t.Error(diff)
	}
	for _, page := range []string{"None", "2.0", ""} {
		if got := status(t, s.URL+"/api/v1/assessments?page="+page); got != 422 {
			t.Errorf("page %q gives %d", page, got)
		}
	}
	_, first, _ := get(t, s.URL+"/api/v1/events?cursor=None")
	if first["events"].([]any)[0].(map[string]any)["id"] != 1.0 {
		t.Errorf("a bad cursor gives %v", first)
	}
	rounds, cursor := 0, ""
	for {
		rounds++
		_, body, _ := get(t, s.URL+"/api/v1/events?cursor="+cursor)
		if body["next_cursor"] == nil {
			break
		}
		cursor = body["next_cursor"].(string)
	}
	if rounds != 4 {
		t.Errorf("%d rounds", rounds)
	}
}

func TestFailuresOnRequest(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t, testapi.Options{})
	got := []int{}
	for _, q := range []string{"page=1", "page=2", "page=2", "page=2&fail_on=2"} {
		got = append(got, status(t, s.URL+"/api/v1/flaky?"+q))
	}
	if diff := cmp.Diff([]int{200, 500, 200, 200}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := http.Post(s.URL+"/api/v1/flaky/reset", "", nil); err != nil {
		t.Fatal(err)
	}
	if status(t, s.URL+"/api/v1/flaky?page=2") != 500 {
		t.Error("the counters were not cleared")
	}
	for kind, want := range map[string]int{"429": 429, "500": 500, "503": 503, "auth": 401, "403": 403, "404": 404} {
		code, _, header := get(t, s.URL+"/api/v1/errors?retry_after=7&error_type="+kind)
		if code != want || (want == 429 || want == 503) != (header.Get("Retry-After") == "7") {
			t.Errorf("%s: %d, Retry-After %q", kind, code, header.Get("Retry-After"))
		}
	}
	requests := s.Requests()
	if last := requests[len(requests)-1]; last.Path != "/api/v1/errors" || last.Method != "GET" {
		t.Errorf("recorded %+v", last)
	}
}

func TestPatientsHaveTheSamePagesEveryTime(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t, testapi.Options{RateLimit: -1})
	pages := func(path string) int {
		for n := 1; ; n++ {
			if status(t, fmt.Sprintf("%s%s&page=%d", s.URL, path, n)) == 404 {
				return n - 1
			}
		}
	}
	var records []int
	for i := 1; i <= 6; i++ {
		records = append(records, pages(fmt.Sprintf("/api/v1/patient-records?payload_kb=1&patientId=P-%04d", i)))
	}
	if diff := cmp.Diff([]int{5, 3, 3, 3, 4, 2}, records); diff != "" {
		t.Error(diff)
	}
	for kind, want := range map[string][]int{
		"assessments": {2, 2, 4, 3, 4, 3, 3, 4, 4, 2}, "conditions": {3, 2, 3, 3, 1, 1, 1, 2, 1, 1},
		"medications": {2, 2, 3, 3, 2, 2, 2, 2, 2, 3}, "vital_signs": {1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	} {
		var got []int
		for p := 1; p <= 10; p++ {
			got = append(got, pages(fmt.Sprintf("/api/v1/patient/%s?patientId=%d", kind, p)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	if status(t, s.URL+"/api/v1/pft/mds/details?assessmentId=a,b") != 400 || status(t, s.URL+"/api/v1/pft/batch/nonsense?patientIds=1") != 400 {
		t.Error("bad input is taken")
	}
}

func TestTheRateOfPatientsIsLimited(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t, testapi.Options{RateLimit: 3})
	limited := 0
	for range 20 {
		code, _, header := get(t, s.URL+"/api/v1/patient/demographics?patientId=1")
		if code == 429 && header.Get("Retry-After") == "1" {
			limited++
		}
	}
	if limited == 0 {
		t.Error("20 calls at once pass a limit of 3 a second")
	}
}

func TestTheProbeSeesOverlap(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t, testapi.Options{})
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() { status(t, s.URL+"/api/v1/concurrency/probe?delay_seconds=0.3") })
	}
	calls.Wait()
	_, stats, _ := get(t, s.URL+"/api/v1/concurrency/stats")
	if stats["started"] != 4.0 || stats["completed"] != 4.0 || stats["active"] != 0.0 || stats["max_active"].(float64) < 2 {
		t.Errorf("%v", stats)
	}
}

func TestProbesWithoutADelayWaitForCompany(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t, testapi.Options{Company: time.Minute})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { status(t, s.URL+"/api/v1/concurrency/probe") })
	}
	calls.Wait()
	status(t, s.URL+"/api/v1/concurrency/probe") // they have met: nobody waits any more
	_, stats, _ := get(t, s.URL+"/api/v1/concurrency/stats")
	if stats["completed"] != 3.0 || stats["max_active"] != 2.0 {
		t.Errorf("%v", stats)
	}
}
