package progress_test

import (
	"context"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/testkit"
)

// Marking books as read does not block writers that move or delete books and then what was read of them, as scans do.
func TestMarkingBesideWhoHoldsTheBooks(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 2)
	reader := s.User(t, "one", "reader")
	reader.Do("PUT", "/api/v1/books/"+books[0].String()+"/progress", map[string]any{"currentPage": 3, "completed": true}).Want(200)

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	scan, err := s.DB.Owner.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = scan.Rollback(context.Background()) }()
	if _, err := scan.Exec(ctx, "select from book where id = any($1) order by id for update", books); err != nil {
		t.Fatal(err)
	}
	marked := make(chan int)
	go func() {
		marked <- reader.Do("POST", "/api/v1/books/bulk/read", map[string]any{"bookIds": books}).Status
	}()
	s.DB.AwaitLock(t)
	if _, err := scan.Exec(ctx, "update reading_session set pass = pass where book_id = any($1)", books); err != nil {
		t.Error(err)
	}
	if err := scan.Commit(ctx); err != nil {
		t.Error(err)
	}
	if got := <-marked; got != 200 {
		t.Errorf("marking as read answers %d", got)
	}
}
