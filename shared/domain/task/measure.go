package task

import "github.com/google/uuid"

// Measurement describes the reading of a book's unknown page sizes; its target is OfUnmeasuredBook.
func Measurement() Spec { return Spec{Type: MeasurePages, DedupeKey: MeasurePages + ":"} }

// OfUnmeasuredBook is a book with page sizes that were never looked for (0; -1: looked for and not found), on pages
// that can be read on their own, from the file or a page pack. The methods are those that are not direct by
// archive.Entry: SolidRAR, SevenZip and PDFPage.
func OfUnmeasuredBook(id uuid.UUID) Target {
	return Target{"Book", id.String(), `select b.library_id, b.series_id, b.id as book_id, '{}'::jsonb as params from book b
		join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id and (p.file_size, p.file_etag, p.file_modified) = (b.size, b.etag, b.modified_at)
		left join page_pack k on k.tenant_id = b.tenant_id and k.book_id = b.id and k.fingerprint = b.fingerprint
		where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null and b.analyzed and b.error_type is null
		  and exists (select from unnest(p.widths, p.methods, k.offsets) as u(width, method, packed)
		    where u.width = 0 and (u.method not between -6 and -4 or u.packed >= 0))`, []any{id}}
}
