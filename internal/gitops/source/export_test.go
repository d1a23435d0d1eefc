package source

// FilesRead counts the contents that the store read so far.
func (s *Store) FilesRead() int64 { return s.filesRead.Load() }

// Artifacts counts the artifacts that the store has.
func (s *Store) Artifacts() int {
	s.build.Lock()
	defer s.build.Unlock()
	return len(s.artifacts)
}

// Blobs counts the contents that the store has.
func (s *Store) Blobs() int {
	s.build.Lock()
	defer s.build.Unlock()
	return len(s.blobs)
}
