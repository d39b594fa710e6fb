package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/longbox/longbox/localstack/gateway"
	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/localstack/supervise"
)

// The programs that make up Longbox, in the order they are listed in messages.
const (
	api       = "api"
	media     = "media"
	worker    = "worker"
	scheduler = "scheduler"
	relay     = "sse-relay"
	plugin    = "plugin"
	migrate   = "migrate"
)

var functions = []string{api, media, worker, scheduler, relay, plugin}

// checkPrograms fails when a binary is missing.
func (s *Stack) checkPrograms() error {
	for _, name := range append([]string{migrate}, functions...) {
		if _, err := os.Stat(filepath.Join(s.config.Programs, name)); err != nil {
			return fmt.Errorf("program %s is not built: start with make run", filepath.Join(s.config.Programs, name))
		}
	}
	return nil
}

// baseEnvironment is what every program but plugin is given. It starts from the environment of this process, so that
// any setting of a function may be given to make run, without what belongs to other clouds and databases.
func (s *Stack) baseEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool { return foreign(nameOf(pair)) })
	if _, set := os.LookupEnv("PDF_CACHE_DIR"); !set {
		env = append(env, "PDF_CACHE_DIR="+s.compiled)
	}
	return append(env,
		"DATABASE_URL="+s.postgres.AppURL(),
		"DATABASE_SYSTEM_URL="+s.postgres.SystemURL(),
		"REDIS_URL="+s.redis.URL(),
		"MEDIA_S3_ENDPOINT="+s.media.Endpoint(),
		"LIBRARY_S3_ENDPOINT="+s.library.Endpoint(),
		"UPLOAD_MAX_BYTES=0", // the gateway over the library folders refuses every write
		"MEDIA_BUCKET="+gateway.Bucket,
		"S3_PATH_STYLE=true",
		"AWS_REGION="+gateway.Region,
		"AWS_ACCESS_KEY_ID="+s.secrets.S3AccessKey,
		"AWS_SECRET_ACCESS_KEY="+s.secrets.S3SecretKey,
		"AWS_EC2_METADATA_DISABLED=true",
		"AUTH_SIGNING_KEY="+s.secrets.AuthSigningKey,
		"PUBLIC_URL="+s.publicURL(),
		"TRUSTED_PROXIES=1",                                                  // the front
		"DATABASE_PREPARE="+strconv.FormatBool(s.postgres.KeepsPlansApart()), // no pooler stands between
		"SINGLE_TENANT=true",
		"LIBRARY_ROOTS="+library.Environment(s.roots),
		"API_URL=http://"+s.address(api),
		"HOME="+s.scratch, "TMPDIR="+s.scratch,
		// libvips keeps the code that it makes (ORC) in a file that is mapped: on a disk that is full that ends the program.
		"XDG_RUNTIME_DIR=/dev/shm",
	)
}

// foreign reports whether a variable of this process must not reach the children: credentials and endpoints of a real
// cloud, settings of another database, the administrator's password (migrate alone gets it), the way to plugins run
// elsewhere and the key of their credentials, and our own.
func foreign(name string) bool {
	switch name {
	case "PLUGIN_URL", "PLUGIN_TOKEN", "PLUGIN_FUNCTION", "PLUGIN_LAMBDA_ENDPOINT", "PLUGIN_DATA_DIR", "CREDENTIALS_KEY":
		return true
	case "LONGBOX_ADMIN", "DATABASE_OWNER_URL", "DATABASE_ADMIN_URL", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "LIBRARY", "PORT", "BIND", "DATA_DIR",
		"_HANDLER", "_LAMBDA_SERVER_PORT", "LAMBDA_TASK_ROOT", "MAKEFLAGS", "MAKELEVEL", "MFLAGS":
		return true
	}
	return strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "PG")
}

func (s *Stack) address(name string) string { return "127.0.0.1:" + strconv.Itoa(s.ports[name]) }

func (s *Stack) publicURL() string {
	if s.config.PublicURL != "" {
		return s.config.PublicURL
	}
	host := s.config.Bind
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // of all addresses the one that is always there
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(s.front.Port()))
}

// needless are the secrets that a program has no use for, as in the cloud. Those that only api and worker have use for
// are in toPlugins.
var needless = map[string][]string{
	api:       {"DATABASE_SYSTEM_URL"},
	media:     {"DATABASE_SYSTEM_URL"},
	worker:    {"AUTH_SIGNING_KEY"},
	scheduler: {"AUTH_SIGNING_KEY"},
	relay:     {"AUTH_SIGNING_KEY", "DATABASE_URL", "DATABASE_SYSTEM_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"},
}

func without(env []string, names ...string) []string {
	return slices.DeleteFunc(env, func(pair string) bool { return slices.Contains(names, nameOf(pair)) })
}

// nameOf is the name of a variable of the environment.
func nameOf(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	return name
}

// environment is what a function is given.
func (s *Stack) environment(name string) []string {
	if name == plugin {
		return s.pluginEnvironment()
	}
	env := append(without(s.baseEnvironment(), needless[name]...), "LISTEN_ADDR="+s.address(name), Processors(name), Connections(name))
	if name == api || name == worker {
		env = append(env, s.toPlugins()...)
	}
	return env
}

// functionSpec is how a function runs. A killed one loses nothing (tasks are rows with a lease), so when the
// supervisor dies the kernel may kill it at once.
func (s *Stack) functionSpec(name string) supervise.Spec {
	return supervise.Spec{
		Name: name, Path: filepath.Join(s.config.Programs, name), Dir: s.scratch,
		Env:     s.environment(name),
		Account: s.account, Nice: Nice(name),
		Stop: syscall.SIGTERM, Grace: 15 * time.Second, Orphan: syscall.SIGKILL,
		Ready: supervise.Healthy("http://" + s.address(name) + "/health"), Patience: time.Minute,
	}
}

// Processors is the setting for how many processors a program uses at once, unless GOMAXPROCS says so for all. A
// request goes through several processes of this machine one after the other: a program that spreads its own part
// over all cores only takes them from the next, and pays for waking them. The worker is alone with its work.
func Processors(program string) string {
	if n := os.Getenv("GOMAXPROCS"); n != "" {
		return "GOMAXPROCS=" + n
	}
	n := runtime.NumCPU()
	if program != worker {
		n = max(1, n/2)
	}
	return "GOMAXPROCS=" + strconv.Itoa(n)
}

// Connections is the setting for how many sessions of the database a program has, unless DATABASE_MAX_CONNS says so
// for all. The database shares this machine's processors: more statements at once than these can work on only make
// each of them slower, and somebody who asks for much is in everybody's way.
func Connections(program string) string {
	const name = "DATABASE_MAX_CONNS="
	if n := os.Getenv("DATABASE_MAX_CONNS"); n != "" {
		return name + n
	}
	if program == worker || program == scheduler {
		return name + "8" // of these they mostly wait
	}
	return name + strconv.Itoa(min(max(4, 2*runtime.NumCPU()), 16))
}

// Nice is a program's nice value: lists come before pages in new sizes, and whoever reads before the worker's scans and
// before plugins, which are programs of others.
func Nice(program string) int {
	switch program {
	case media:
		return 5
	case worker, plugin:
		return 10
	}
	return 0
}

// operatorFile is where the settings of functions/operator are while the system runs, for make operator.
const operatorFile = "operator.env"

// writeOperator writes them as a shell reads them: addresses and passwords, so for this account only.
func (s *Stack) writeOperator(context.Context) error {
	var text strings.Builder
	for _, name := range []string{"DATABASE_SYSTEM_URL", "REDIS_URL", "MEDIA_S3_ENDPOINT", "MEDIA_BUCKET", "S3_PATH_STYLE", "AWS_REGION",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED", "CREDENTIALS_KEY"} {
		for _, pair := range append(s.baseEnvironment(), "CREDENTIALS_KEY="+s.secrets.CredentialsKey) {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				fmt.Fprintf(&text, "%s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
			}
		}
	}
	if err := os.WriteFile(filepath.Join(s.config.DataDir, operatorFile), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("settings of the operator: %w", err)
	}
	return nil
}

// removeOperator takes the file away when the system stops.
func (s *Stack) removeOperator() error {
	err := os.Remove(filepath.Join(s.config.DataDir, operatorFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// migrateSpec applies the schema, registers the library roots and makes the first administrator.
func (s *Stack) migrateSpec() supervise.Spec {
	env := append(s.baseEnvironment(), "DATABASE_OWNER_URL="+s.postgres.OwnerURL())
	if s.config.Admin != "" {
		env = append(env, "LONGBOX_ADMIN="+s.config.Admin)
	}
	return supervise.Spec{
		Name: migrate, Path: filepath.Join(s.config.Programs, migrate), Env: env, Dir: s.scratch, Account: s.account,
		Quiet: true, // The error of a failure holds its last lines.
		Stop:  syscall.SIGTERM, Grace: 10 * time.Second, Orphan: syscall.SIGKILL,
	}
}
