package pdfcache

// Config tells whether page packs are made at all. Package pack, which this one does not link, checks the value.
type Config struct {
	Made string `env:"PAGE_PACKS" envDefault:"read"`
}

const never = "never" // pack.Never
