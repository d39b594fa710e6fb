package scanner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/analysis"
)

// indexesAtOnce is how many page indexes one statement stores, since planning it costs more than a row. The rest is
// stored one by one: so two prepared statements suffice, instead of one per number of books.
const indexesAtOnce = 8

var storeIndex, storeIndexes = indexStatement(1), indexStatement(indexesAtOnce)

// indexStatement stores the page indexes of n books. Arrays of arrays cannot be unnested, so each book has its own
// parameters.
func indexStatement(n int) string {
	kinds := []string{"uuid", "integer", "text[]", "text[]", "bigint[]", "bigint[]", "bigint[]", "bigint[]", "smallint[]", "bigint[]",
		"integer[]", "integer[]", "bigint", "bigint", "bigint", "bigint", "smallint", "bigint"}
	rows := make([]string, n)
	for i := range rows {
		row := make([]string, len(kinds))
		for j, kind := range kinds {
			row[j] = fmt.Sprintf("$%d::%s", i*len(kinds)+j+1, kind)
		}
		rows[i] = "(" + strings.Join(row, ", ") + ")"
	}
	return `insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights,
		  cover_offset, cover_length, cover_packed, cover_size, cover_method, cover_crc, file_size, file_etag, file_modified)
		select app.tenant(), u.*, k.size, k.etag, k.modified_at from (values ` + strings.Join(rows, ", ") + `) as u(id, revision)
		join book k on k.tenant_id = app.tenant() and k.id = u.id and k.revision = u.revision
		on conflict (tenant_id, book_id) do update set revision = excluded.revision,
		  file_size = excluded.file_size, file_etag = excluded.file_etag, file_modified = excluded.file_modified, names = excluded.names, types = excluded.types,
		  offsets = excluded.offsets, lengths = excluded.lengths, packed = excluded.packed, sizes = excluded.sizes, methods = excluded.methods,
		  crcs = excluded.crcs, widths = ` + measured("widths") + `, heights = ` + measured("heights") + `, cover_offset = excluded.cover_offset,
		  cover_length = excluded.cover_length, cover_packed = excluded.cover_packed, cover_size = excluded.cover_size,
		  cover_method = excluded.cover_method, cover_crc = excluded.cover_crc`
}

// measured is SQL for a column of sizes: if the file is the same, sizes measured since its last analysis are kept.
func measured(column string) string {
	return `case when (page_index.file_size, page_index.file_etag, page_index.file_modified, page_index.names)
		    = (excluded.file_size, excluded.file_etag, excluded.file_modified, excluded.names)
		  then array(select greatest(s.was, s.now) from unnest(page_index.` + column + `, excluded.` + column + `) with ordinality as s(was, now, at) order by s.at)
		  else excluded.` + column + ` end`
}

// queueIndexes stores the page indexes of books.
func queueIndexes(b *pgx.Batch, found []analyzed) {
	var rows [][]any
	for _, a := range found {
		if a.Result != nil {
			rows = append(rows, indexRow(a))
		}
	}
	for ; len(rows) >= indexesAtOnce; rows = rows[indexesAtOnce:] {
		b.Queue(storeIndexes, slices.Concat(rows[:indexesAtOnce]...)...)
	}
	for _, row := range rows {
		b.Queue(storeIndex, row...)
	}
}

// indexRow returns the parameters of a page index.
func indexRow(a analyzed) []any {
	p := pageArrays(a.Pages)
	var cover struct {
		offset, length, packed, size, crc *int64
		method                            *int16
	}
	if c := a.OwnCover(); c != nil {
		crc, method := int64(c.CRC32), int16(c.Method)
		cover.offset, cover.length, cover.packed, cover.size, cover.crc, cover.method = &c.Offset, &c.Length, &c.CompressedSize, &c.Size, &crc, &method
	}
	return []any{a.ID, a.Revision, p.names, p.types, p.offsets, p.lengths, p.packed, p.sizes, p.methods, p.crcs, p.widths, p.heights,
		cover.offset, cover.length, cover.packed, cover.size, cover.method, cover.crc}
}

type arrays struct {
	names, types                          []string
	offsets, lengths, packed, sizes, crcs []int64
	methods                               []int16
	widths, heights                       []int32
}

func pageArrays(pages []analysis.Page) arrays {
	a := arrays{names: []string{}, types: []string{}, offsets: []int64{}, lengths: []int64{}, packed: []int64{}, sizes: []int64{},
		crcs: []int64{}, methods: []int16{}, widths: []int32{}, heights: []int32{}}
	for _, p := range pages {
		a.names, a.types = append(a.names, p.Name), append(a.types, p.MediaType)
		a.offsets, a.lengths = append(a.offsets, p.Offset), append(a.lengths, p.Length)
		a.packed, a.sizes = append(a.packed, p.CompressedSize), append(a.sizes, p.Size)
		a.crcs, a.methods = append(a.crcs, int64(p.CRC32)), append(a.methods, int16(p.Method))
		a.widths, a.heights = append(a.widths, int32(p.Width)), append(a.heights, int32(p.Height))
	}
	return a
}
