package operator

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Export says what to export, and where to.
type Export struct {
	Name        string `json:"name"`
	WithSecrets bool   `json:"withSecrets" arg:"with-secrets" help:"also export password hashes, hashes of keys and tokens, and the tenant's secret"`
	Output      string `json:"output" arg:"output" help:"file to write, which must not exist; default: an object in the media bucket, whose address is in the answer"`
}

// Exported says where the export is. URL is valid for five minutes for anybody; the object is deleted after a day.
type Exported struct {
	Name      string           `json:"name"`
	File      string           `json:"file,omitempty"`
	Object    string           `json:"object,omitempty"`
	URL       string           `json:"url,omitempty"`
	ExpiresAt *time.Time       `json:"expiresAt,omitempty"`
	Bytes     int64            `json:"bytes"`
	Rows      map[string]int64 `json:"rows"`
}

const urlLife = 5 * time.Minute

// Manifest is manifest.json of an export.
type Manifest struct {
	Format      int       `json:"format"` // 1
	Tenant      string    `json:"tenant"`
	TenantID    string    `json:"tenantId"`
	ExportedAt  time.Time `json:"exportedAt"`
	WithSecrets bool      `json:"withSecrets"`
	Tables      []Table   `json:"tables"`
}

// Table is one table of an export: an NDJSON file with a row per line, by column.
type Table struct {
	Name    string   `json:"name"`
	File    string   `json:"file"`
	Columns []Column `json:"columns"`
	Rows    int64    `json:"rows"`
}

// Column is a column of a table. bytea values are text: \x and hexadecimal digits. Omitted columns are left out.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Omitted bool   `json:"omitted,omitempty"`
}

// export writes every row of the tenant, from one snapshot, to a ZIP.
func (o *Operator) export(ctx context.Context, i Export) (any, error) {
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	if i.Output != "" {
		return o.exportFile(ctx, t, i)
	}
	writing := ctx
	if end, ok := ctx.Deadline(); ok { // an invocation
		o.removeStale()
		var cancel context.CancelFunc
		writing, cancel = context.WithDeadline(ctx, end.Add(-2*spare)) // to store it takes time, too
		defer cancel()
	}
	f, err := os.CreateTemp(o.Temp, tempName)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	m, err := o.writeExport(writing, t, i.WithSecrets, &capped{f, maxPut})
	if err != nil && ctx.Err() == nil && writing.Err() != nil {
		return nil, fault.Wrap(err, fault.Conflict, "The export takes longer than an invocation; %s", elsewhere)
	}
	if err != nil {
		return nil, err
	}
	out := m.exported()
	if out.Bytes, err = f.Seek(0, io.SeekCurrent); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	out.Object = blob.Exports + t.ID.String() + "/" + m.ExportedAt.Format("20060102T150405Z") + "-" + rand.Text() + ".zip"
	if err := o.Media.PutFile(ctx, o.Bucket, out.Object, "application/zip", f); err != nil {
		return nil, err
	}
	out.ExpiresAt = new(time.Now().Add(urlLife).UTC())
	out.URL, err = o.Media.PresignGet(ctx, o.Bucket, out.Object, urlLife)
	return out, err
}

const (
	tempName  = "longbox-export-"
	maxPut    = 5 << 30 // bytes that a store takes in one request
	elsewhere = "run the command on a machine, with --output"
)

// removeStale deletes what an invocation that was ended has left. An instance has one invocation at a time.
func (o *Operator) removeStale() {
	stale, _ := filepath.Glob(filepath.Join(cmp.Or(o.Temp, os.TempDir()), tempName+"*")) // it fails only for a bad pattern
	for _, name := range stale {
		if err := os.Remove(name); err != nil {
			slog.Warn("cannot delete the file of an unfinished export", "file", name, "error", err)
		}
	}
}

// capped fails before more is written than can be stored.
type capped struct {
	io.Writer
	left int64
}

func (c *capped) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, fault.New(fault.Conflict, "The export is too large for one object (5 GB); %s", elsewhere)
	}
	return c.Writer.Write(p)
}

// exportFile writes to a temporary file and renames it at the end: a partial file of a killed program must not look
// complete.
func (o *Operator) exportFile(ctx context.Context, t *row, i Export) (_ any, err error) {
	if _, err := os.Lstat(i.Output); err == nil {
		return nil, fault.Invalid("output", "file %s already exists; remove it or name another", i.Output)
	}
	f, err := os.CreateTemp(filepath.Dir(i.Output), filepath.Base(i.Output)+".*.part")
	if err != nil {
		return nil, fault.Invalid("output", "%v", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), i.Output)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	m, err := o.writeExport(ctx, t, i.WithSecrets, f)
	if err != nil {
		return nil, err
	}
	out := m.exported()
	out.File = i.Output
	out.Bytes, err = f.Seek(0, io.SeekCurrent)
	return out, err
}

func (m *Manifest) exported() *Exported {
	out := &Exported{Name: m.Tenant, Rows: map[string]int64{}}
	for _, t := range m.Tables {
		out.Rows[t.Name] = t.Rows
	}
	return out
}

// writeExport streams the ZIP: the tables, then the manifest, which counts them.
func (o *Operator) writeExport(ctx context.Context, t *row, secrets bool, w io.Writer) (*Manifest, error) {
	tables, err := o.tables(ctx)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Format: 1, Tenant: t.Name, TenantID: t.ID.String(), ExportedAt: time.Now().UTC(), WithSecrets: secrets}
	z := zip.NewWriter(w)
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, o.System.Pool(), snapshot, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select app.use_tenant($1)", t.ID); err != nil {
			return err
		}
		for _, table := range append([]string{"tenant"}, tables...) {
			done, err := exportTable(ctx, tx, z, table, secrets)
			if err != nil {
				return fmt.Errorf("export %s: %w", table, err)
			}
			m.Tables = append(m.Tables, done)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f, err := z.Create("manifest.json")
	if err != nil {
		return nil, err
	}
	e := json.NewEncoder(f)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return nil, err
	}
	return m, z.Close()
}

func exportTable(ctx context.Context, tx pgx.Tx, z *zip.Writer, table string, secrets bool) (Table, error) {
	out := Table{Name: table, File: "tables/" + table + ".ndjson"}
	rows, err := tx.Query(ctx, `select a.attname::text, format_type(a.atttypid, a.atttypmod), coalesce(col_description(a.attrelid, a.attnum), '') = 'secret'
		from pg_attribute a where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`, "public."+table)
	if err != nil {
		return out, err
	}
	var c Column
	var secret bool
	omitted := []string{}
	if _, err := pgx.ForEachRow(rows, []any{&c.Name, &c.Type, &secret}, func() error {
		c.Omitted = secret && !secrets
		if c.Omitted {
			omitted = append(omitted, c.Name)
		}
		out.Columns = append(out.Columns, c)
		return nil
	}); err != nil {
		return out, err
	}
	f, err := z.Create(out.File)
	if err != nil {
		return out, err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	key := "tenant_id"
	if table == "tenant" {
		key = "id"
	}
	rows, err = tx.Query(ctx, "select (to_jsonb(r) - $1::text[])::text from "+pgx.Identifier{table}.Sanitize()+" r where "+key+" = app.tenant()", omitted)
	if err != nil {
		return out, err
	}
	var line string
	if _, err := pgx.ForEachRow(rows, []any{&line}, func() error {
		if strings.ContainsRune(line, '\n') {
			return errors.New("a row has more than one line")
		}
		out.Rows++
		_, err := w.WriteString(line + "\n")
		return err
	}); err != nil {
		return out, err
	}
	return out, w.Flush()
}
