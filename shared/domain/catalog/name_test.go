package catalog

import (
	"fmt"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/book"
)

// A book of very many people does not stop the feed that lists it.
func TestManyNames(t *testing.T) {
	t.Parallel()
	const n = 200_000
	var p publication
	for i := range n {
		p.Authors = append(p.Authors, book.Author{Name: fmt.Sprintf("Somebody Whose Number Is %06d", i)})
	}
	p.Authors = append(p.Authors, p.Authors...)
	done := make(chan []string, 1)
	go func() { done <- p.names() }()
	select {
	case names := <-done:
		if len(names) != n || names[0] != p.Authors[0].Name || names[n-1] != p.Authors[n-1].Name {
			t.Errorf("%d names", len(names))
		}
	case <-time.After(20 * time.Second):
		t.Error("still busy after 20 seconds")
	}
}
