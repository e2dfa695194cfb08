package store

import "time"

// Inspection is what a database tells of itself to somebody who only reads.
type Inspection struct {
	Where    string    // the database, without secrets
	Software string    // its name and version
	User     string    // as whom we are known there
	Clock    time.Time // of its machine; zero when that is ours
	Exists   bool      // it holds tables of ours
	Applied  int       // migrations
	Known    int       // migrations of this program
	Schema   error     // why this program cannot use its tables; nil when it can
	Lacks    []string  // rights that are missing
	NotOwned []string  // tables that belong to somebody else, and so cannot be altered
	// Sealed are some credentials by name, as they are stored.
	Sealed map[string]string
}
