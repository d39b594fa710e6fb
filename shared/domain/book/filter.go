package book

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/filter"
)

// ReadStatus lists the values of the filter field readStatus.
var ReadStatus = []string{"unread", "in_progress", "read"}

var fields = filter.Schema{
	"libraryId": {Type: filter.UUID, Column: "b.library_id"},
	"seriesId":  {Type: filter.UUID, Column: "b.series_id"},
	"title":     {Type: filter.Text, Column: "b.title"},
	"name":      {Type: filter.Text, Column: "b.title"},
	"titleSort": {Type: filter.Text, Column: "b.title_sort"},
	"summary":   {Type: filter.Text, Column: metadata("summary")},
	"bookType":  {Type: filter.Text, Column: metadata("bookType")},
	"format":    {Type: filter.Text, Column: "b.format"},
	"path":      PathField("b.library_id", "b.key"),
	"pageCount": {Type: filter.Number, Column: "b.page_count"},
	"year":      {Type: filter.Number, Column: "(" + metadata("year") + ")::integer"},
	"dateAdded": {Type: filter.Date, Column: "b.created_at"},
	"hasError":  {Type: filter.Bool, Column: "(b.error_type is not null)"},
	"genre":     TermField("series", "genre", "b.series_id"),
	"tag":       TermField("series", "tag", "b.series_id"),
	"ownGenre":  TermField("book", "genre", "b.id"),
	"author": {Type: filter.Text, Column: "a.value ->> 'name'",
		Among: "exists (select from book_metadata m, jsonb_array_elements(case jsonb_typeof(m.metadata -> 'authors') when 'array' then m.metadata -> 'authors' else '[]' end) a" +
			" where m.tenant_id = app.tenant() and m.book_id = b.id and %s)"},
	"readListId": MemberField("book_id", "b.id"),
	"inReadList": InAnyField("collection_member", "book_id", "b.id"),
	"wantToRead": WantedField("book_id", "b.id"),
	"releaseDay": {Type: filter.Number, Column: "(" + metadata("year") + "::integer * 10000 + coalesce(" + metadata("month") + "::integer, 1) * 100 + coalesce(" +
		metadata("day") + "::integer, 1))"},
	"readStatus": {Type: filter.Enum, Values: ReadStatus, Custom: readStatus},
}

// metadata is SQL for a text in the metadata of book b.
func metadata(key string) string {
	return "(select m.metadata ->> '" + key + "' from book_metadata m where m.tenant_id = app.tenant() and m.book_id = b.id)"
}

// PathField filters by the path of a file, as Join builds it from library (SQL of its id) and key (SQL). Library paths
// are read once, not per row. Keys may not be NFC and their collation compares bytes, hence normalize and collate.
func PathField(library, key string) filter.Field {
	return filter.Field{Type: filter.Text, Column: "(rtrim((select jsonb_object_agg(l.id, l.path) from library l where l.tenant_id = app.tenant()) ->> " +
		library + "::text, '/') || '/' || normalize(" + key + ` collate "default", nfc))`}
}

// TermField filters by genre or tag (table) of a series or book (owner) whose id is the SQL id.
func TermField(owner, table, id string) filter.Field {
	return filter.Field{Type: filter.Text, Column: "t.name", Among: fmt.Sprintf(`%[3]s in (select x.%[1]s_id from %[1]s_%[2]s x
		join %[2]s t on t.tenant_id = x.tenant_id and t.id = x.%[2]s_id where x.tenant_id = app.tenant() and %%s)`, owner, table, id)}
}

// MemberField filters by membership in a manual collection or read list. id is SQL of the member's id, column the
// member column.
func MemberField(column, id string) filter.Field {
	return filter.Field{Type: filter.UUID, Custom: func(b *filter.Builder, op string, value any) (string, error) {
		if one, ok := value.(uuid.UUID); ok {
			value = []uuid.UUID{one}
		}
		in := " in "
		if op == "isNot" || op == "notIn" {
			in = " not in "
		}
		return id + in + "(select m." + column + " from collection_member m where m.tenant_id = app.tenant() and m." + column +
			" is not null and m.collection_id = any(" + b.Arg(value) + "))", nil
	}}
}

// InAnyField filters by whether table has any row for a series or book; for collections only manual ones count. id is
// SQL of its id, column the column of the table.
func InAnyField(table, column, id string) filter.Field {
	return filter.Field{Type: filter.Bool, Column: "(" + id + " in (select x." + column + " from " + table + " x where x.tenant_id = app.tenant() and x." +
		column + " is not null))"}
}

// WantedField filters by the caller's want-to-read list.
func WantedField(column, id string) filter.Field {
	return filter.Field{Type: filter.Bool, Column: "(" + id + " in (select w." + column +
		" from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and w." + column + " is not null))"}
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

// Condition compiles the condition of a filtered list; its parameters begin at firstArg. An invalid one is a BadRequest
// that names the place.
func Condition(raw json.RawMessage, s filter.Schema, firstArg int) (where string, args []any, err error) {
	where, args, err = filter.Compile(raw, s, firstArg)
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
	Condition      json.RawMessage `json:"condition,omitempty" doc:"Tree of allOf and anyOf nodes, with leaves of the form {field: {operator, value}}"`
	FullTextSearch *string         `json:"fullTextSearch,omitempty" nullable:"true" maxLength:"1000" doc:"Words that must all occur in the title; the best matches come first unless sort is given"`
}

// Find returns the normalized search text, nil if there is none.
func (b ListBody) Find() *string {
	if b.FullTextSearch == nil {
		return nil
	}
	if words := naming.Normalize(*b.FullTextSearch); words != "" {
		return &words
	}
	return nil
}
