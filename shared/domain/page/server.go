package page

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/platform/blob"
)

// Server sends the original pages, the files of books and series, and files within EPUBs. It limits the memory and the
// concurrent work that these take.
type Server struct {
	Finder  *Finder
	Content *content.Reader // reads the library
	Media   *blob.Store     // holds the page packs
	Bucket  string          // bucket of Media
	// Want asks for a page pack of a book with expensive pages; nil disables it.
	Want func(ctx context.Context, i *Index)
	// MaxArchive is the maximum number of bytes of files in one archive response; zero means no limit.
	MaxArchive int64
	// Renew queues the analysis of a book whose file has changed; nil disables it.
	Renew *Renewer

	costly    *costly
	turns     turns // for stores on this machine
	books     *directories
	downloads *downloads
}

// NewServer makes a Server.
func NewServer(s Server) *Server {
	s.costly, s.turns, s.books, s.downloads = newCostly(), newTurns(), &directories{}, &downloads{of: map[uuid.UUID]int{}}
	return &s
}
