package duckdb

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// failure classifies an error of DuckDB, whose messages begin with the class.
func failure(err error) *tool.Error {
	var known *tool.Error
	if errors.As(err, &known) {
		return known
	}
	text := message(err)
	e := &tool.Error{Kind: tool.KindUnknown, Code: "DUCKDB", Message: text}
	if strings.Contains(text, "constraint violation") { // an appender leaves the class out
		e.Kind, e.Code = tool.KindDBConstraint, "DUCKDB_CONSTRAINT"
		return e
	}
	class, _, ok := strings.Cut(text, ": ")
	if !ok || !strings.HasSuffix(class, "Error") || len(class) > 40 {
		return e
	}
	e.Code = "DUCKDB_" + strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(strings.TrimSuffix(class, "Error")), " ", "_"))
	if name := missingExtension(text); name != "" {
		e.Kind, e.Code = tool.KindConfig, "EXTENSION_MISSING"
		e.Message = fmt.Sprintf("DuckDB's extension %q is neither in this program nor to be had: it is downloaded when first used, or put into the directory noetldb/extensions of the data directory. %s", name, firstLine(text))
		return e
	}
	e.Kind, e.Retryable = classify(e.Code, text)
	if strings.Contains(text, "Could not set lock") {
		e.Message = "the database file is in use by another process: " + firstLine(text)
	}
	return e
}

// classify gives the kind of an error and whether another attempt may help.
func classify(code, text string) (kind string, retryable bool) {
	switch code {
	case "DUCKDB_CONSTRAINT":
		return tool.KindDBConstraint, false
	case "DUCKDB_TRANSACTIONCONTEXT", "DUCKDB_TRANSACTION":
		return tool.KindDBDeadlock, true
	case "DUCKDB_CONNECTION":
		return tool.KindDBConnection, true
	case "DUCKDB_NETWORK", "DUCKDB_HTTP":
		return tool.KindConnection, true
	case "DUCKDB_OUT_OF_MEMORY":
		return tool.KindResourceLimit, false
	case "DUCKDB_PERMISSION":
		return tool.KindStorageAccess, false
	case "DUCKDB_INTERNAL", "DUCKDB_FATAL":
		return tool.KindInternal, false
	case "DUCKDB_IO":
		return classifyIO(text)
	}
	return tool.KindUnknown, false
}

func classifyIO(text string) (kind string, retryable bool) {
	switch {
	case strings.Contains(text, "Could not set lock"):
		return tool.KindDBConnection, true
	case strings.Contains(text, "No files found"), strings.Contains(text, "No such file"):
		return tool.KindNotFound, false
	case strings.Contains(text, "No space left"):
		return tool.KindStorageQuota, false
	case strings.Contains(text, "Permission denied"), strings.Contains(text, "Cannot open file"):
		return tool.KindStorageAccess, false
	}
	return tool.KindUnknown, false
}

// message is the text of an error without what the library puts before the
// class.
func message(err error) string {
	text := strings.TrimSpace(err.Error())
	if at := className.FindStringIndex(text); at != nil && at[0] < 120 {
		return strings.TrimPrefix(text[at[0]:], ": ")
	}
	for _, noise := range []string{"database/sql/driver: ", "could not flush appender: ", "could not append row: ", "Failed to append: "} {
		text = strings.TrimPrefix(text, noise)
	}
	return text
}

var className = regexp.MustCompile(`(?m)(^|: )[A-Z][A-Za-z -]* Error: `)

var extensionNames = []*regexp.Regexp{
	regexp.MustCompile(`/(\w+)\.duckdb_extension`),
	regexp.MustCompile(`(?i)extension ["'](\w+)["']`),
	regexp.MustCompile(`(?i)["'](\w+)["'] extension`),
	regexp.MustCompile(`(?i)the (\w+) extension`),
}

// missingExtension names the extension that an error is about.
func missingExtension(text string) string {
	if !strings.Contains(strings.ToLower(text), "extension") {
		return ""
	}
	for _, re := range extensionNames {
		if m := re.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// at says which statement of a text failed.
func at(ctx context.Context, err error, number, count, line int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := failure(err)
	if count > 1 {
		out := *e
		out.Message = fmt.Sprintf("statement %d of %d, line %d: %s", number+1, count, line, e.Message)
		return &out
	}
	return e
}
