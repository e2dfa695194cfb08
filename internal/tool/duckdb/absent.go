//go:build !duckdb

package duckdb

// library is DuckDB itself: not in this build.
var library engine
