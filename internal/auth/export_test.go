package auth

// Addresses is how many addresses the service remembers failures of.
func (s *Service) Addresses() int { return s.failures.seen.Len() }
