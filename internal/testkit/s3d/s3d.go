// Package s3d is a server that speaks as much of the S3 protocol as storing,
// reading and removing objects takes, with its objects in memory. It checks no
// signature. It must not be used outside of tests.
package s3d

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running server with one bucket.
type Server struct {
	Host   string // host:port
	Bucket string

	mu      sync.Mutex // guards what follows
	objects map[string][]byte
	uploads map[string]*upload
	next    int
	// Refuse, when set, may answer a request itself with a status.
	Refuse func(r *http.Request) int
}

type upload struct {
	key   string
	began time.Time
	parts map[string][]byte
}

// Start runs a server until the test ends.
func Start(t testing.TB, bucket string) *Server {
	t.Helper()
	s := &Server{Bucket: bucket, objects: map[string][]byte{}, uploads: map[string]*upload{}}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.Host = strings.TrimPrefix(web.URL, "http://")
	return s
}

// Keys are the names of the objects that are there.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for k := range s.objects {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Uploads counts uploads in parts that were neither completed nor given up.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// Damage changes a byte of an object.
func (s *Server) Damage(key string, at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key][at] ^= 0x40
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fault(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	if s.Refuse != nil {
		if status := s.Refuse(r); status != 0 {
			fault(w, status, "AccessDenied")
			return
		}
	}
	if sum := r.Header.Get("Content-Md5"); sum != "" {
		if got := md5.Sum(body); base64.StdEncoding.EncodeToString(got[:]) != sum {
			fault(w, http.StatusBadRequest, "BadDigest")
			return
		}
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if bucket != s.Bucket {
		fault(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" {
		s.bucket(w, r)
		return
	}
	s.object(w, r, key, body)
}

func (s *Server) bucket(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case q.Has("uploads"):
		type one struct {
			Key       string
			UploadId  string //nolint:revive // the protocol's word
			Initiated time.Time
		}
		var list struct {
			XMLName xml.Name `xml:"ListMultipartUploadsResult"`
			Upload  []one
		}
		for id, u := range s.uploads {
			if strings.HasPrefix(u.key, q.Get("prefix")) {
				list.Upload = append(list.Upload, one{u.key, id, u.began})
			}
		}
		reply(w, list)
	case q.Has("location"):
		_, _ = io.WriteString(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></LocationConstraint>`)
	}
}

func (s *Server) object(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	q := r.URL.Query()
	id := q.Get("uploadId")
	switch u := s.uploads[id]; {
	case id != "" && u == nil:
		fault(w, http.StatusNotFound, "NoSuchUpload")
	case r.Method == http.MethodPost && q.Has("uploads"):
		s.next++
		id = fmt.Sprint("upload-", s.next)
		s.uploads[id] = &upload{key, time.Now(), map[string][]byte{}}
		reply(w, struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			UploadId string   //nolint:revive // the protocol's word
		}{UploadId: id})
	case r.Method == http.MethodPut && u != nil:
		u.parts[fmt.Sprintf("%06s", q.Get("partNumber"))] = body
		w.Header().Set("ETag", tag(body))
	case r.Method == http.MethodPost && u != nil:
		var names []string
		for n := range u.parts {
			names = append(names, n)
		}
		slices.Sort(names)
		var all []byte
		for _, n := range names {
			all = append(all, u.parts[n]...)
		}
		s.objects[key] = all
		delete(s.uploads, id)
		reply(w, struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
			Bucket  string
			Key     string
			ETag    string
		}{Bucket: s.Bucket, Key: key, ETag: tag(all)})
	case r.Method == http.MethodDelete && u != nil:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		s.objects[key] = body
		w.Header().Set("ETag", tag(body))
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		data, there := s.objects[key]
		if !there {
			fault(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", tag(data))
		http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(string(data)))
	}
}

func tag(data []byte) string {
	sum := md5.Sum(data)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(v)
}

func fault(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}
