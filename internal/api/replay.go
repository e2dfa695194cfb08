package api

// Replays replays logs.
type Replays interface{}

func (s *Server) replayRoutes() []route { return nil }
