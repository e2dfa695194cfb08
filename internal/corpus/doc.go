// Package corpus holds the test that runs real playbooks, none of them written
// for this engine, and compares what happens with what a correct engine does.
// The playbooks and the expectations lie beside the repository, in
// ../shared/fixtures; without them the test skips. It has no code of its own
// and must not be imported.
package corpus
