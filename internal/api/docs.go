package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/noetl/noetl-go/internal/api/openapi"
	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) docsRoutes() []route {
	return []route{
		entry(http.MethodGet, "/api/openapi.json", Anyone, s.openAPI, "describes this API as an OpenAPI 3.1 document", "If-None-Match", `OpenAPI document`).within(Pathless),
		entry(http.MethodGet, "/api/docs", Anyone, s.docsPage, "shows the same as a page to read", "", "text/html").within(Pathless),
		entry(http.MethodGet, "/api/docs/{file}", Anyone, s.docsFile, "serves the parts of that page", "", "text/css | text/javascript").within(Pathless),
	}
}

// examplesJSON are real exchanges, one for an operation. The wire tests write
// them: go test ./internal/wire -run EveryRoute -update.
//
//go:embed examples.json
var examplesJSON []byte

func readExamples() map[string]openapi.Example {
	var list map[string]openapi.Example
	if err := json.Unmarshal(examplesJSON, &list); err != nil {
		panic("examples.json: " + err.Error()) // it is part of the program
	}
	return list
}

// shelfFile is a file that is the same for everybody, with its compressed form.
type shelfFile struct {
	kind, tag  string
	body, gzip []byte
}

func newShelfFile(kind string, body []byte) (*shelfFile, error) {
	sum := sha256.Sum256(body)
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return &shelfFile{kind: kind, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: body, gzip: b.Bytes()}, nil
}

// docs are the document, the page and its parts. They are made when they are
// asked for the first time, and kept: most servers are never asked.
type docs struct {
	once  sync.Once
	files map[string]*shelfFile
	err   error
}

func (s *Server) docsFiles() (map[string]*shelfFile, error) {
	s.docs.once.Do(func() { s.docs.files, s.docs.err = s.makeDocs() })
	return s.docs.files, s.docs.err
}

func (s *Server) makeDocs() (map[string]*shelfFile, error) {
	doc, err := s.document()
	if err != nil { // it lacks something, and is of use all the same
		s.opt.Logger.Warn("the description of the api is not complete", "error", err)
	}
	raw, err := doc.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode the description: %w", err)
	}
	page, err := doc.Page()
	if err != nil {
		return nil, fmt.Errorf("make the page of the api: %w", err)
	}
	files := map[string]*shelfFile{}
	for name, f := range map[string]struct {
		kind string
		body []byte
	}{
		"openapi.json": {"application/json", raw},
		"page":         {"text/html; charset=utf-8", page},
		"docs.css":     {"text/css; charset=utf-8", openapi.Style},
		"docs.js":      {"text/javascript; charset=utf-8", openapi.Script},
	} {
		if files[name], err = newShelfFile(f.kind, f.body); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	return s.shelf(w, r, "openapi.json")
}

func (s *Server) docsPage(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	return s.shelf(w, r, "page")
}

func (s *Server) docsFile(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	if name != "docs.css" && name != "docs.js" {
		return event.Errorf(event.NotFound, "no such file: %s", name)
	}
	return s.shelf(w, r, name)
}

// shelf serves one of the files.
func (s *Server) shelf(w http.ResponseWriter, r *http.Request, name string) error {
	files, err := s.docsFiles()
	if err != nil {
		return err
	}
	f, h := files[name], w.Header()
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache") // keep it, and ask whether it changed
	h.Add("Vary", "Accept-Encoding")
	if match := r.Header.Get("If-None-Match"); match == "*" || strings.Contains(match, f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", f.kind)
	body := f.body
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
	return nil
}

// Describe is the description of the API as JSON; the error tells what is
// missing in it, or too much.
func (s *Server) Describe() ([]byte, error) {
	doc, missing := s.document()
	raw, err := doc.Encode()
	return raw, errors.Join(missing, err)
}
