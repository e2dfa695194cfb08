//go:build race

package storetest

// raced tells that the race detector watches, which makes drivers written in Go
// ten times slower.
const raced = true
