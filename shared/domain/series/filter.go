package series

import (
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/filter"
)

var fields = filter.Schema{
	"libraryId":  {Type: filter.UUID, Column: "s.library_id"},
	"name":       {Type: filter.Text, Column: "s.title"},
	"title":      {Type: filter.Text, Column: "s.title"},
	"readStatus": {Type: filter.Enum, Values: book.ReadStatus, Custom: readStatus},
}

// readStatus starts from the series that the caller has progress in, which are few, not from all there are.
func readStatus(_ *filter.Builder, op string, value any) (string, error) {
	const (
		whole = "r.done = s.book_count"
		begun = "s.id in (select r.series_id from (" + read + ") r where r.series_id = s.id and r.begun"
	)
	sql := map[string]string{
		"read":        begun + " and " + whole + ")",
		"in_progress": begun + " and not " + whole + ")",
		"unread":      "not " + begun + ")",
	}[value.(string)]
	if op == "isNot" {
		sql = "not (" + sql + ")"
	}
	return sql, nil
}
