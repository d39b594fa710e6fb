package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestURL(t *testing.T) {
	t.Parallel()
	c := &Cluster{scratch: `/data/é "x" & ?/tmp`, port: 5433}
	for host, socket := range map[string]bool{"127.0.0.1": false, c.scratch: true} {
		c.socket = socket
		got, err := pgx.ParseConfig(c.url("reader", "p@ss:w/rd", "books"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Host != host || got.Port != 5433 || got.User != "reader" || got.Password != "p@ss:w/rd" || got.Database != "books" || got.TLSConfig != nil {
			t.Errorf("socket %v: read as %+v", socket, got.Config)
		}
	}
}
