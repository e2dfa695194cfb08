// Package behaviour tells what the playbook language promises, number by
// number, as stories that run through the real parser, engine and pipeline with
// scripted tools. Every story is run event by event, then folded again from its
// finished log as a reader of the store sees it, then run with its independent
// ends in random orders; all must agree. It consists of tests only and must not
// know how the engine reaches its decisions.
//
//	go test ./internal/behaviour                        all stories
//	go test ./internal/behaviour -run Scenarios/loops   one file
//	go test ./internal/behaviour -rewrite               accept what comes out
package behaviour
