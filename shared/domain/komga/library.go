package komga

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Library is a library in Komga's format. Komga's settings show what Longbox does.
type Library struct {
	ID                                string   `json:"id"`
	Name                              string   `json:"name"`
	Root                              string   `json:"root"`
	ImportComicInfoBook               bool     `json:"importComicInfoBook"`
	ImportComicInfoSeries             bool     `json:"importComicInfoSeries"`
	ImportComicInfoCollection         bool     `json:"importComicInfoCollection"`
	ImportComicInfoReadList           bool     `json:"importComicInfoReadList"`
	ImportComicInfoSeriesAppendVolume bool     `json:"importComicInfoSeriesAppendVolume"`
	ImportEpubBook                    bool     `json:"importEpubBook"`
	ImportEpubSeries                  bool     `json:"importEpubSeries"`
	ImportMylarSeries                 bool     `json:"importMylarSeries"`
	ImportLocalArtwork                bool     `json:"importLocalArtwork"`
	ImportBarcodeISBN                 bool     `json:"importBarcodeIsbn"`
	ScanForceModifiedTime             bool     `json:"scanForceModifiedTime"`
	ScanInterval                      string   `json:"scanInterval"`
	ScanOnStartup                     bool     `json:"scanOnStartup"`
	ScanCbx                           bool     `json:"scanCbx"`
	ScanPDF                           bool     `json:"scanPdf"`
	ScanEpub                          bool     `json:"scanEpub"`
	ScanDirectoryExclusions           []string `json:"scanDirectoryExclusions" nullable:"false"`
	RepairExtensions                  bool     `json:"repairExtensions"`
	ConvertToCBZ                      bool     `json:"convertToCbz"`
	EmptyTrashAfterScan               bool     `json:"emptyTrashAfterScan"`
	SeriesCover                       string   `json:"seriesCover"`
	HashFiles                         bool     `json:"hashFiles"`
	HashPages                         bool     `json:"hashPages"`
	HashKOReader                      bool     `json:"hashKoreader"`
	AnalyzeDimensions                 bool     `json:"analyzeDimensions"`
	OneshotsDirectory                 *string  `json:"oneshotsDirectory"`
	Unavailable                       bool     `json:"unavailable"`
}

type libraryRow struct {
	ID          uuid.UUID `db:"id"`
	Name        string    `db:"name"`
	Path        string    `db:"path"`
	Active      bool      `db:"is_active"`
	Excluded    *string   `db:"excluded_patterns"`
	ScanOnStart bool      `db:"scan_on_start"`
	Purge       bool      `db:"purge_deleted_on_scan"`
}

const librarySQL = "select id, name, path, is_active, excluded_patterns, scan_on_start, purge_deleted_on_scan from library where tenant_id = app.tenant()"

func (r libraryRow) library() Library {
	out := Library{ID: r.ID.String(), Name: r.Name, Root: r.Path, ImportComicInfoBook: true, ImportComicInfoSeries: true, ImportEpubBook: true,
		ImportEpubSeries: true, ImportMylarSeries: true, ImportLocalArtwork: true, ScanInterval: "DISABLED", ScanOnStartup: r.ScanOnStart,
		ScanCbx: true, ScanPDF: true, ScanEpub: true, ScanDirectoryExclusions: []string{}, EmptyTrashAfterScan: r.Purge, SeriesCover: "FIRST",
		AnalyzeDimensions: true, Unavailable: !r.Active}
	if r.Excluded != nil {
		for line := range strings.Lines(*r.Excluded) {
			if line = strings.TrimSpace(line); line != "" {
				out.ScanDirectoryExclusions = append(out.ScanDirectoryExclusions, line)
			}
		}
	}
	return out
}

func libraries(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("GET", "/v1/libraries", "ListLibraries", "List the libraries by name", auth.LibrariesRead),
		func(ctx context.Context, _ *At) (*[]Library, error) {
			rows, err := db.List[libraryRow](ctx, d, librarySQL+" order by name collate natural_order, id")
			return new(shown(rows, libraryRow.library)), err
		})
	httpapi.Register(a, operation("GET", "/v1/libraries/{id}", "GetLibrary", "Get a library", auth.LibrariesRead),
		func(ctx context.Context, in *IDInput) (*Library, error) {
			row, err := db.Get[libraryRow](ctx, d, librarySQL+" and id = $1", in.ID)
			if err != nil {
				return nil, err
			}
			if row == nil {
				return nil, fault.Missing("Library")
			}
			return new(row.library()), nil
		})
}
