//go:build !failpoints

package failpoint

// Enabled tells whether places can be switched on in this build.
const Enabled = false

// Hit marks a place.
func Hit(Point) error { return nil }

// Configure checks a specification; this build refuses any.
func Configure(spec string) error {
	if spec != "" {
		return errDisabled
	}
	return nil
}
