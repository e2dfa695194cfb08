package api

// Dashboards sums up.
type Dashboards interface{}

func (s *Server) dashboardRoutes() []route { return nil }
