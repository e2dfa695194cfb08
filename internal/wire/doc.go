// Package wire tells what the server promises those who talk to it. It calls
// every route with the requests its clients really send — workers of several
// makes, pages, the command line, gateways, operators — and checks the status
// and the shape of the answer, down to whether an id is a number or a string.
// It also shows, defect by defect, that the known faults of other servers are
// not ours. It consists of tests only and looks from outside: at answers, rows
// and messages, never at how they come about.
//
//	go test ./internal/wire                          all of it
//	go test ./internal/wire -run EveryRoute          the routes
//	go test ./internal/wire -run 'Defect_3[0-9]_'    some defects
package wire
