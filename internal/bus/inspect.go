package bus

import "time"

// Inspection is what a broker tells of itself to somebody who only looks.
type Inspection struct {
	Where     string // without secrets
	Version   string
	Clock     time.Time     // of the broker; zero when it does not say
	RoundTrip time.Duration // of one question
	JetStream error         // why it cannot keep messages; nil when it can
	Missing   []string      // streams that a server will make
	Wrong     []error       // streams and consumers with other settings than we need
}
