// Package db runs SQL on behalf of a tenant. Every call starts with the statement that enters the tenant (and, for a
// request, its user). It is pipelined with the caller's statements into one implicit transaction: one network round
// trip, and nothing takes effect when the entry is refused.
package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Config locates Postgres.
type Config struct {
	URL      string        `env:"DATABASE_URL,required"`
	Setting  string        // variable that URL came from, for errors; empty is DATABASE_URL
	MaxConns int32         `env:"DATABASE_MAX_CONNS" envDefault:"8"`
	Timeout  time.Duration `env:"DATABASE_TIMEOUT" envDefault:"15s"`
	// Connect limits how long a statement waits for a new connection, so that clients soon learn that Postgres is down.
	// Waiting for a connection in use has no such limit. Zero is 5 s.
	Connect time.Duration `env:"DATABASE_CONNECT_TIMEOUT" envDefault:"800ms"`
	// Prepare keeps query plans in the server's sessions, which saves planning. It needs dedicated sessions: leave it
	// off behind a transaction pooler (pgbouncer, RDS Proxy). Servers that share plans between roles (see
	// KeepsPlansApart) are refused.
	Prepare bool `env:"DATABASE_PREPARE" envDefault:"false"`
}

// Validate returns an error that names the setting out of bounds. Open checks the URL.
func (c Config) Validate() error {
	if c.MaxConns < 1 || c.MaxConns > 1000 {
		return fmt.Errorf("DATABASE_MAX_CONNS: must be 1 to 1000, is %d", c.MaxConns)
	}
	if c.Timeout < 100*time.Millisecond {
		return fmt.Errorf("DATABASE_TIMEOUT: must be at least 100ms, is %s", c.Timeout)
	}
	if c.Connect < 0 || c.Connect > 0 && c.Connect < 50*time.Millisecond {
		return fmt.Errorf("DATABASE_CONNECT_TIMEOUT: must be at least 50ms, is %s", c.Connect)
	}
	return nil
}

// DB is a pool of connections. It connects on first use, so that the start makes no network call.
type DB struct {
	pool    *pgxpool.Pool
	turns   *turns // shares the connections among tenants and accounts
	timeout time.Duration
	away    atomic.Int64 // no connection attempts until then, Unix nanoseconds: the last one timed out
}

// awayFor is the pause in connection attempts after one timed out. A request with several statements waits only once,
// and a recovering server does not get all attempts at once.
const awayFor = 300 * time.Millisecond

// closeWithin limits how long a connection that is given up keeps its place in the pool. pgx waits 15 s for the
// server's last bytes, which never come over a connection that a router has forgotten.
const closeWithin = 2 * time.Second

// With Prepare, a statement whose context ends gets cancelAfter to end by itself. Then the server is asked to cancel
// it, so that the connection and its plans stay, unless there is no answer within answerWithin. Without Prepare there
// may be a pooler: RDS Proxy does not pass on such a request, and pgbouncer can crash when one is given up.
const (
	cancelAfter  = 50 * time.Millisecond
	answerWithin = 500 * time.Millisecond
)

// mostPlans limits the plans that a session keeps. Each takes about 0.1 MB of the server's memory.
const mostPlans = 128

var errAway = errors.New("the database did not accept a connection a moment ago")

// Open prepares the pool. Unless Prepare is set, it uses no named prepared statements, so a transaction pooler may
// stand in between.
func Open(c Config) (*DB, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	setting := cmp.Or(c.Setting, "DATABASE_URL")
	if c.URL == "" {
		return nil, fmt.Errorf("%s: must be the address of a database, is empty", setting)
	}
	pc, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	pc.MaxConns = c.MaxConns
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if c.Prepare {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
		pc.ConnConfig.StatementCacheCapacity = mostPlans
		pc.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, CancelRequestDelay: cancelAfter, DeadlineDelay: answerWithin}
		}
	}
	if c.Connect == 0 {
		c.Connect = 5 * time.Second
	}
	pc.ConnConfig.ConnectTimeout = c.Connect
	pc.PingTimeout = c.Connect / 4 // limit per idle connection; they are pinged one after the other
	d := &DB{timeout: c.Timeout, turns: newTurns(int(c.MaxConns))}
	goesOn := pc.ConnConfig.OnPgError
	pc.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		// read_only_sql_transaction also closes the connection: its server became a reader, or the host name still led
		// to one. The next connection may reach the writer.
		return err.Code != "25006" && goesOn(conn, err)
	}
	pc.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		if time.Now().UnixNano() < d.away.Load() {
			return errAway
		}
		return nil
	}
	pc.BeforeClose = func(conn *pgx.Conn) {
		time.AfterFunc(closeWithin, func() { _ = conn.PgConn().Conn().Close() }) // usually it is closed by then
	}
	pc.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		if c.Prepare {
			if err := checkPlans(conn.PgConn().ParameterStatus("server_version")); err != nil {
				return err
			}
		}
		// Times are scanned in UTC, whatever the machine's zone: the API writes them with a Z.
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID,
			Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}})
		return nil
	}
	if d.pool, err = pgxpool.NewWithConfig(context.Background(), pc); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return d, nil
}

// Close closes all connections.
func (d *DB) Close() { d.pool.Close() }

// Pool returns the bare pool, for statements outside any tenant (health, listening, system-wide claims).
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// Scope is the identity that statements run as: a request's caller, a worker's task, or a bare tenant.
type Scope interface {
	// Enter queues the statement that binds the transaction to the scope.
	Enter(b *pgx.Batch)
	// TenantID returns the tenant of the scope.
	TenantID() uuid.UUID
	// UserID returns the account that the statements are for, or uuid.Nil.
	UserID() uuid.UUID
}

type scopeKey struct{}

// In returns a context with the scope that later calls enter.
func In(ctx context.Context, s Scope) context.Context { return context.WithValue(ctx, scopeKey{}, s) }

// ScopeOf returns the scope of ctx, or nil.
func ScopeOf(ctx context.Context) Scope { s, _ := ctx.Value(scopeKey{}).(Scope); return s }

// errNoScope means that a statement would run without a tenant: a bug.
var errNoScope = errors.New("db: no tenant in the context")

// Run sends the batch in one round trip as one transaction, after entering the scope of ctx. The callbacks of the
// queued queries read the results. If one statement fails, the whole batch fails.
func (d *DB) Run(ctx context.Context, b *pgx.Batch) error { return d.RunWithin(ctx, b, d.timeout) }

// RunWithin is Run with another time limit.
func (d *DB) RunWithin(ctx context.Context, b *pgx.Batch, limit time.Duration) error {
	scope := ScopeOf(ctx)
	if scope == nil {
		return errNoScope
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := &pgx.Batch{}
	scope.Enter(all)
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	conn, release, err := d.acquire(ctx, scope)
	if err != nil {
		return translate(err)
	}
	// Also after a panic in a callback: a busy connection is then closed, not returned.
	defer release()
	return answered(ctx, conn.SendBatch(ctx, all).Close())
}

// acquire returns a connection of the pool. It waits for the turn of the scope while others use the connections. For a
// new connection it waits at most Connect.
func (d *DB) acquire(ctx context.Context, s Scope) (conn *pgxpool.Conn, release func(), err error) {
	by := holder{s.TenantID(), s.UserID()}
	if err := d.turns.take(ctx, by); err != nil {
		return nil, nil, err
	}
	if conn, err = d.pool.Acquire(ctx); err != nil {
		d.turns.give(by)
		if errors.As(err, new(*pgconn.ConnectError)) {
			d.away.Store(time.Now().Add(awayFor).UnixNano())
		}
		return nil, nil, err
	}
	return conn, func() { conn.Release(); d.turns.give(by) }, nil
}

// Enter only checks that the scope of ctx may enter.
func (d *DB) Enter(ctx context.Context) error { return d.Run(ctx, &pgx.Batch{}) }

// Tx runs fn in an explicit transaction, for rules that need to read before they write. It takes two more round trips
// than Run. Its statements must use the context that fn gets. This ends at the time limit for all of them: without it,
// a statement would wait forever for a locked row.
func (d *DB) Tx(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	scope := ScopeOf(ctx)
	if scope == nil {
		return errNoScope
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	conn, release, err := d.acquire(ctx, scope)
	if err != nil {
		return translate(err)
	}
	defer release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return answered(ctx, err)
	}
	defer func() { // also after a panic, and when ctx has ended; a commit leaves nothing to undo
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
		defer cancel()
		_ = tx.Rollback(ctx) // if it fails, pgx closes the connection
	}()
	b := &pgx.Batch{}
	scope.Enter(b)
	if err = tx.SendBatch(ctx, b).Close(); err == nil {
		err = fn(ctx, tx)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	return answered(ctx, err)
}

// answered translates an error of statements that had a connection: if the time is up, Postgres was reachable but
// overloaded. Without a connection, the same error means that none was available.
func answered(ctx context.Context, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "57014" && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err) // it ended because of the context, which Postgres cannot say
	}
	if errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*fault.Error)) {
		return tooLong(err)
	}
	return translate(err)
}

// RetryDeadlock repeats a transaction, up to twice, that Postgres aborts because of a deadlock.
func RetryDeadlock[T any](do func() (T, error)) (out T, err error) {
	for range 3 {
		out, err = do()
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "40P01" {
			break
		}
	}
	return out, err
}

// translate turns a database error into one for the client: a refused entry into 401 or 403, an unreachable or
// overloaded server into 503. Other errors pass unchanged.
func translate(err error) error {
	if err == nil || errors.As(err, new(*fault.Error)) {
		return err
	}
	if errors.As(err, new(*pgconn.ConnectError)) { // also if the server says why it refuses connections
		return unavailable(err)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "LB401":
			return fault.New(fault.Unauthorized, "%s", pg.Message)
		case "LB403":
			return fault.New(fault.Forbidden, "%s", pg.Message)
		case "LB409":
			return fault.New(fault.Conflict, "%s", pg.Message)
		case "57014", "25P04", "53400": // the statement_timeout of app.enter; limits set by an operator
			if strings.HasPrefix(pg.Where, "while ") && strings.Contains(pg.Where, " tuple ") { // it waited for somebody else's row
				return meanwhile(err)
			}
			return tooLong(err)
		case "22021", "22P05":
			return unstorable(err)
		case "22P02": // in a JSON column: Go accepted the JSON, Postgres does not
			if strings.HasSuffix(pg.Message, "for type json") {
				return unstorable(err)
			}
		case "22003":
			return fault.Wrap(err, fault.BadRequest, "A number is too large or too small to be stored")
		case "54001":
			return fault.Wrap(err, fault.BadRequest, "Something in the request is nested too deeply for the database")
		case "54000": // an index row must fit into a third of a page
			return fault.Wrap(err, fault.BadRequest, "A text used for sorting or searching is too long to be stored: the limit is 2,600 bytes, or 860 Chinese or Japanese characters")
		case "23503": // the referenced row was deleted between check and write
			return fault.Wrap(err, fault.Unavailable, "Something that the request refers to was removed at the same moment; try again").After(time.Second)
		case "40P01", "40001", "55P03": // a deadlock that this transaction lost, or an operator's lock_timeout
			return meanwhile(err)
		case "53100":
			return fault.Wrap(err, fault.Unavailable, "Nothing can be stored at the moment: the disk of the database is full; the operator must free space on it").After(30 * time.Second)
		case "58030":
			return fault.Wrap(err, fault.Unavailable, "The disk of the database reports errors; the operator must check the disk and the Postgres log").After(30 * time.Second)
		case "57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "53000", "53200", "53300", "25006":
			return unavailable(err)
		}
		if strings.HasPrefix(pg.Code, "08") { // connection errors, also from poolers
			return unavailable(err)
		}
		return err
	}
	var network net.Error
	if errors.Is(err, errAway) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		pgconn.SafeToRetry(err) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // the connection ended during the statement
		return unavailable(err)
	}
	return err
}

func unstorable(err error) error {
	return fault.Wrap(err, fault.BadRequest, "A text contains a character that cannot be stored (NUL, half of a surrogate pair, or bytes that are not UTF-8)")
}

func meanwhile(err error) error {
	return fault.Wrap(err, fault.Unavailable, "Somebody else changed the same data at the same moment, so nothing was stored; try again").After(time.Second)
}

func tooLong(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The database took too long for this request: ask for less at once, use a narrower filter, or try again when the server is less busy").After(2 * time.Second)
}

func unavailable(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The database is not reachable at the moment; try again shortly").After(2 * time.Second)
}

// LeaseLost reports whether the worker's task was cancelled or taken over. The worker must then stop without writing.
func LeaseLost(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "LB410"
}

// Conflict reports whether err is a violation of the named unique index.
func Conflict(err error, index string) bool { return violates(err, "23505", index) }

// Dangling reports whether err is a violation of the named foreign key: the referenced row does not exist.
func Dangling(err error, key string) bool { return violates(err, "23503", key) }

func violates(err error, code, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code && pg.ConstraintName == constraint
}
