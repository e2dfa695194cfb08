package api

// Variables keeps values beside executions.
type Variables interface{}

func (s *Server) variableRoutes() []route { return nil }
