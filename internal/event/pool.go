package event

// CheckPool refuses the name of a worker pool that cannot be one token of a
// subject and part of a consumer's name: nobody could ever be told of its
// commands.
func CheckPool(name string) error {
	ok := len(name) >= 1 && len(name) <= 64
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			ok = false
		}
	}
	if ok {
		return nil
	}
	return &Error{
		Code: Invalid, Message: "worker pool \"" + name + "\" cannot be used", Remedy: "use up to 64 letters, digits, - and _",
	}
}
