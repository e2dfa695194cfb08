package testapi

import (
	"crypto/md5"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// among spreads texts evenly over 0…n-1, the same way every time.
func among(text string, n int64) int {
	sum := md5.Sum([]byte(text))
	return int(new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), big.NewInt(n)).Int64())
}

// patientRecords are two to five pages for each patient, then nothing.
func (s *Server) patientRecords(c *call) {
	id, page, kb := c.text("patientId"), c.whole("page", 1), c.whole("payload_kb", 100)
	if !s.admit("patient-records", c.whole("rate_limit", s.options.RateLimit)) {
		c.w.Header().Set("Retry-After", "1")
		c.fail(http.StatusTooManyRequests, "Rate limit exceeded")
		return
	}
	delay := time.Duration(c.number("min_delay", s.options.PatientDelay.Seconds()) * float64(time.Second))
	pages := 2 + among(id, 4)
	if page < 1 || page > pages {
		c.fail(http.StatusNotFound, "No more pages")
		return
	}
	c.wait(delay)
	c.answer(object{
		"data":   []object{{"patientId": id, "page": page, "payload": strings.Repeat("r", kb<<10)}},
		"paging": object{"page": page, "totalPages": pages, "hasMore": page < pages, "isLastPage": page == pages},
	})
}

// pagesOf is how many pages of a kind of record a patient has.
func pagesOf(kind, patient string) (int, bool) {
	spread := patient + ":" + kind
	switch kind {
	case "assessments":
		return 2 + among(spread, 3), true
	case "conditions":
		return 1 + among(spread, 3), true
	case "medications":
		return 2 + among(spread, 2), true
	case "vital_signs":
		return 1, true
	}
	return 0, false
}

// patientPage is one record of a patient; there is one on each page.
func (s *Server) patientPage(c *call) {
	kind, id, page := c.r.PathValue("type"), c.text("patientId"), c.whole("page", 1)
	pages, known := pagesOf(kind, id)
	if !known || page < 1 || page > pages {
		c.fail(http.StatusNotFound, "No such page")
		return
	}
	c.answer(patientDocument(kind, id, page, pages))
}

func patientDocument(kind, id string, page, pages int) object {
	entry := object{"id": fmt.Sprintf("%s-%s-%d", kind, id, page), "patientId": id, "page": page}
	if kind == "assessments" {
		entry["mdsAssessmentIds"] = mdsOf(id, page)
	}
	return object{
		"data": []object{entry},
		"paging": object{
			"page": page, "pageSize": 1, "totalPages": pages, "totalCount": pages, "hasMore": page < pages, "isLastPage": page == pages,
		},
	}
}

// mdsOf are the five to ten assessments that a page of a patient refers to.
func mdsOf(id string, page int) []string {
	n := 5 + among(fmt.Sprintf("%s:assessments:%d", id, page), 6)
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("MDS-%s-%d-%d", id, page, i+1)
	}
	return out
}

func (s *Server) demographics(c *call) { c.answer(person(c.text("patientId"))) }

func person(id string) object {
	return object{
		"patientId": id, "firstName": "First" + id, "lastName": "Last" + id, "gender": []string{"F", "M"}[among(id, 2)],
		"birthDate": fmt.Sprintf("19%02d-01-01", 30+among(id, 60)),
	}
}

func (s *Server) mdsIDs(c *call) {
	id := c.text("patientId")
	c.answer(object{"patientId": id, "assessmentIds": mdsOf(id, c.whole("page", 1))})
}

func (s *Server) mdsAssessment(c *call) { c.answer(mds(c.r.PathValue("id"))) }

func mds(id string) object {
	return object{"assessmentId": id, "score": among(id, 100), "status": "completed"}
}

// mdsDetails takes one assessment at a time.
func (s *Server) mdsDetails(c *call) {
	id := c.text("assessmentId")
	if id == "" || strings.Contains(id, ",") {
		c.fail(http.StatusBadRequest, "assessmentId must be a single id")
		return
	}
	c.answer(object{"rows": []object{{"assessment_id": id, "payload": mds(id)}}, "rowCount": 1})
}

const largestBatch = 500

// batch answers for many patients at once.
func (s *Server) batch(c *call) {
	kind, perFacility := c.r.PathValue("type"), max(c.whole("patientsPerFacility", 1000), 1)
	ids := strings.FieldsFunc(c.text("patientIds"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(ids) == 0 || len(ids) > largestBatch {
		c.fail(http.StatusBadRequest, fmt.Sprintf("patientIds must name 1 to %d patients", largestBatch))
		return
	}
	rows := []object{}
	for _, id := range ids {
		n, err := strconv.Atoi(id)
		if err != nil {
			c.fail(http.StatusBadRequest, "patientIds must be numbers")
			return
		}
		row, ok := batchRow(kind, id)
		if !ok {
			c.fail(http.StatusBadRequest, "unknown type "+kind)
			return
		}
		row["patient_id"], row["facility_mapping_id"] = n, (n-1)/perFacility+1
		rows = append(rows, row)
	}
	c.answer(object{"rows": rows, "rowCount": len(rows), "type": kind})
}

func batchRow(kind, id string) (object, bool) {
	switch kind {
	case "demographics":
		return object{"payload": person(id)}, true
	case "mds", "mds_details", "mds_assessments":
		at := "MDS-" + id + "-1"
		return object{"assessment_id": at, "payload": mds(at)}, true
	}
	pages, ok := pagesOf(kind, id)
	if !ok {
		return nil, false
	}
	return object{"page_number": 1, "payload": patientDocument(kind, id, 1, pages), "is_last_page": pages == 1}, true
}
