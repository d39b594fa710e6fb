package db

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuidCodec transfers a [uuid.UUID] as its 16 bytes. Without it pgx uses driver.Valuer and sql.Scanner, which format
// and parse each id as text.
type uuidCodec struct{ pgtype.UUIDCodec }

// PlanEncode implements [pgtype.Codec].
func (c uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return uuidPlan{}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

// PlanScan implements [pgtype.Codec].
func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return uuidPlan{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

// uuidPlan encodes and scans UUIDs in Postgres' binary format.
type uuidPlan struct{}

// Encode implements [pgtype.EncodePlan].
func (uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(uuid.UUID)
	return append(buf, id[:]...), nil
}

// Scan implements [pgtype.ScanPlan]. Null becomes [uuid.Nil], as in the type's own Scan.
func (uuidPlan) Scan(src []byte, target any) error {
	id := target.(*uuid.UUID)
	*id = uuid.Nil
	if src != nil && len(src) != len(id) {
		return fmt.Errorf("a UUID must have 16 bytes, not %d", len(src))
	}
	copy(id[:], src)
	return nil
}
