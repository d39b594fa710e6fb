package page

import (
	"context"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/platform/blob"
)

// Server streams original pages.
type Server struct {
	Finder  *Finder
	Content *content.Reader // of the library
	Media   *blob.Store     // of page packs
	Bucket  string          // of Media
	// Want asks for a page pack of a book whose pages are dear; nil asks for none.
	Want func(ctx context.Context, i *Index)
	// MaxArchive is how many bytes of files one answer can hold; zero is no bound.
	MaxArchive int64
	// Renew queues the analysis of a book whose file has changed; nil queues none.
	Renew *Renewer

	dear  *dear
	turns turns // of stores on this machine
	books *directories
}

// NewServer makes a Server.
func NewServer(s Server) *Server {
	s.dear, s.turns, s.books = newDear(), newTurns(), &directories{}
	return &s
}
