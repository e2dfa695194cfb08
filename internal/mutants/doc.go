// Package mutants proves that the simulation finds mistakes: it breaks one rule
// of the product at a time and expects the run of a known seed to fail. Nothing
// in the tree changes; a broken file is laid over the real one while the
// simulation is compiled. The package consists of tests only.
//
//	make mutants          every mutant, with the seed listed in docs/testing.md
//	make mutants FIND=1   look for the seeds again and rewrite the list
package mutants
