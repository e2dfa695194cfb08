// Package simulation runs the whole control plane in virtual time: planes that
// crash, workers that misbehave, a bus and a store that lose things. One seed
// makes one run. A scheduler lets one thing happen at a time, every operation
// of the store included, so a seed leads to the same run again; what planes
// draw for themselves, the jitter of their sweeps, is evened out. It consists
// of tests only and must not know how a plane does its work: what it proves, it
// proves from the log and the projections.
//
//	go test ./internal/simulation                  the usual seeds
//	SIM_SEED=17 go test -v ./internal/simulation   one run, with its log
//	make simulate SEEDS=10000                      a campaign
package simulation
