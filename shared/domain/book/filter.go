package book

import (
	"encoding/json"
	"errors"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/filter"
)

// ReadStatus are the values of the filter field readStatus.
var ReadStatus = []string{"unread", "in_progress", "read"}

var fields = filter.Schema{
	"libraryId":  {Type: filter.UUID, Column: "b.library_id"},
	"seriesId":   {Type: filter.UUID, Column: "b.series_id"},
	"title":      {Type: filter.Text, Column: "b.title"},
	"name":       {Type: filter.Text, Column: "b.title"},
	"readStatus": {Type: filter.Enum, Values: ReadStatus, Custom: readStatus},
}

func readStatus(_ *filter.Builder, op string, value any) (string, error) {
	const mine = "exists (select from progress p where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = b.id and "
	sql := map[string]string{
		"read":        mine + "p.completed)",
		"in_progress": mine + "not p.completed and p.current_page > 0)",
		"unread":      "not " + mine + "(p.completed or p.current_page > 0))",
	}[value.(string)]
	if op == "isNot" {
		sql = "not (" + sql + ")"
	}
	return sql, nil
}

// Condition compiles the condition of a filtered list; a bad one is a BadRequest that names the place.
func Condition(raw json.RawMessage, s filter.Schema) (where string, args []any, err error) {
	where, args, err = filter.Compile(raw, s, 1)
	var bad *filter.Error
	if errors.As(err, &bad) {
		field := "condition"
		if bad.Path != "" {
			field += "." + bad.Path
		}
		return "", nil, fault.Invalid(field, "%s", bad.Message)
	}
	if where == "true" {
		where = ""
	}
	return where, args, err
}

// ListBody is the body of a filtered list; paging and sorting are in the query.
type ListBody struct {
	Condition      json.RawMessage `json:"condition,omitempty" doc:"Tree of allOf, anyOf and leaves {field: {operator, value}}"`
	FullTextSearch *string         `json:"fullTextSearch,omitempty" nullable:"true" maxLength:"1000" doc:"Words that the title has, all of them; best matches first unless sort says otherwise"`
}

// Find is what the titles are searched for; "" is nothing.
func (b ListBody) Find() string {
	if b.FullTextSearch == nil {
		return ""
	}
	return naming.Normalize(*b.FullTextSearch)
}
