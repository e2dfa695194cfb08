package api

// Outboxes is the side that publishes and projects events.
type Outboxes interface{}

func (s *Server) outboxRoutes() []route { return nil }
