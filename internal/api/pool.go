package api

// Pools is the registry of workers.
type Pools interface{}

func (s *Server) poolRoutes() []route { return nil }
