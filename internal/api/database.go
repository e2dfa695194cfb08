package api

// Databases checks and repairs what is stored.
type Databases interface{}

func (s *Server) databaseRoutes() []route { return nil }
