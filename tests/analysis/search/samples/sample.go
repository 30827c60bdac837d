package main

// Serve accepts.
func (s *Server) Serve(l Listener) error {
	return nil
}

type Server struct {
	Name string
}
