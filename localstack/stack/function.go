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
	"github.com/longbox/longbox/localstack/postgres"
	"github.com/longbox/longbox/localstack/redis"
	"github.com/longbox/longbox/localstack/secret"
	"github.com/longbox/longbox/localstack/supervise"
)

// Programs of Longbox, in the order in which messages list them.
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

// checkPrograms returns an error if a binary is missing.
func (s *Stack) checkPrograms() error {
	for _, name := range append([]string{migrate}, functions...) {
		if _, err := os.Stat(filepath.Join(s.config.Programs, name)); err != nil {
			return fmt.Errorf("program %s is not built: start with make run", filepath.Join(s.config.Programs, name))
		}
	}
	return nil
}

// baseEnvironment returns the environment of every program but plugin. It starts from this process's environment, so
// that make run accepts any setting of a function, but without variables for other clouds and databases.
func (s *Stack) baseEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool { return foreign(nameOf(pair)) })
	if _, set := os.LookupEnv("PDF_CACHE_DIR"); !set {
		env = append(env, "PDF_CACHE_DIR="+s.compiled)
	}
	return append(env, Services{Postgres: s.postgres, Redis: s.redis, Media: s.media, Library: s.library, Secrets: s.secrets, Roots: s.roots,
		Scratch: s.scratch, PublicURL: s.publicURL(), API: s.address(api)}.Environment()...)
}

// Services are what functions use.
type Services struct {
	Postgres       *postgres.Cluster
	Redis          *redis.Server
	Media, Library *gateway.Gateway
	Secrets        secret.Set
	Roots          []library.Root
	Scratch        string // folder for temporary files
	PublicURL      string
	API            string // address of the api
}

// Environment returns the settings of functions that use the services.
func (s Services) Environment() []string {
	return []string{
		"DATABASE_URL=" + s.Postgres.AppURL(),
		"DATABASE_SYSTEM_URL=" + s.Postgres.SystemURL(),
		"REDIS_URL=" + s.Redis.URL(),
		"MEDIA_S3_ENDPOINT=" + s.Media.Endpoint(),
		"LIBRARY_S3_ENDPOINT=" + s.Library.Endpoint(),
		"UPLOAD_MAX_BYTES=0", // the gateway over the library folders refuses all writes
		"MEDIA_BUCKET=" + gateway.Bucket,
		"S3_PATH_STYLE=true",
		"AWS_REGION=" + gateway.Region,
		"AWS_ACCESS_KEY_ID=" + s.Secrets.S3AccessKey,
		"AWS_SECRET_ACCESS_KEY=" + s.Secrets.S3SecretKey,
		"AWS_EC2_METADATA_DISABLED=true",
		"AUTH_SIGNING_KEY=" + s.Secrets.AuthSigningKey,
		"PUBLIC_URL=" + s.PublicURL,
		"TRUSTED_PROXIES=1",                                                    // the front
		"DATABASE_PREPARE=" + strconv.FormatBool(s.Postgres.KeepsPlansApart()), // there is no pooler in between
		"SINGLE_TENANT=true",
		"LIBRARY_ROOTS=" + library.Environment(s.Roots),
		"API_URL=http://" + s.API,
		"HOME=" + s.Scratch, "TMPDIR=" + s.Scratch,
		// libvips stores its generated code (ORC) in a mapped file. On a full disk that would crash the program.
		"XDG_RUNTIME_DIR=/dev/shm",
	}
}

// ofCDN are the settings for a CDN, which make run does not have: nobody would send its secret, and the front knows no
// addresses for it.
var ofCDN = []string{"CDN_KEY_ID", "CDN_PRIVATE_KEY", "CDN_URL", "DELIVERY", "ORIGIN_SECRET"}

// foreign reports whether a variable must not reach the children: credentials and endpoints of a real cloud, settings
// of another database, the administrator's password (only migrate gets it), the address of plugins run elsewhere and
// the key of their credentials, the settings for a CDN, and our own settings.
func foreign(name string) bool {
	switch name {
	case "PLUGIN_URL", "PLUGIN_TOKEN", "PLUGIN_FUNCTION", "PLUGIN_LAMBDA_ENDPOINT", "PLUGIN_DATA_DIR", "CREDENTIALS_KEY",
		"LONGBOX_ADMIN", "DATABASE_OWNER_URL", "DATABASE_ADMIN_URL", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "LIBRARY", "PORT", "BIND", "DATA_DIR",
		"_HANDLER", "_LAMBDA_SERVER_PORT", "LAMBDA_TASK_ROOT", "MAKEFLAGS", "MAKELEVEL", "MFLAGS":
		return true
	}
	return slices.Contains(ofCDN, name) || strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "PG")
}

func (s *Stack) address(name string) string { return "127.0.0.1:" + strconv.Itoa(s.ports[name]) }

func (s *Stack) publicURL() string {
	if s.config.PublicURL != "" {
		return s.config.PublicURL
	}
	host := s.config.Bind
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // the address that always exists
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(s.front.Port()))
}

// sayMailLinks says that links in mail lead each reader to the reader's own device, if they do and mail is sent.
func (s *Stack) sayMailLinks(mailServer string) {
	if mailServer == "" || s.config.PublicURL != "" {
		return
	}
	host := s.config.Bind
	if ip, err := netip.ParseAddr(host); host == "" || host == "localhost" || err == nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		s.console.Say("Longbox: links in mail will lead to %s, each reader's own device: "+
			"set PUBLIC_URL to the address that people use", s.publicURL())
	}
}

// needless are the secrets that a program does not need, as in the cloud. Secrets that only api and worker need are in
// toPlugins.
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

// nameOf returns the name of an environment variable.
func nameOf(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	return name
}

// environment returns the environment of a function.
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

// functionSpec returns how to run a function. A killed function loses nothing (tasks are rows with a lease), so the
// kernel may kill it when the supervisor dies.
func (s *Stack) functionSpec(name string) supervise.Spec {
	return supervise.Spec{
		Name: name, Path: filepath.Join(s.config.Programs, name), Dir: s.scratch,
		Env:     s.environment(name),
		Account: s.account, Nice: Nice(name),
		Stop: syscall.SIGTERM, Grace: 15 * time.Second, Orphan: syscall.SIGKILL,
		Ready: supervise.Healthy("http://" + s.address(name) + "/health"), Patience: time.Minute,
	}
}

// Processors returns the setting for the CPUs of a program, unless GOMAXPROCS sets it for all. A request passes through
// several processes of this machine one after the other. If one of them spread its part over all CPUs, it would take
// them from the next one and pay for waking them. The worker is alone with its work.
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

// Connections returns the setting for a program's database sessions, unless DATABASE_MAX_CONNS sets it for all. The
// database shares the CPUs of this machine: more concurrent statements only make each slower, and one heavy user would
// slow down all others.
func Connections(program string) string {
	const name = "DATABASE_MAX_CONNS="
	if n := os.Getenv("DATABASE_MAX_CONNS"); n != "" {
		return name + n
	}
	if program == worker || program == scheduler {
		return name + "8" // these mostly wait
	}
	return name + strconv.Itoa(min(max(4, 2*runtime.NumCPU()), 16))
}

// Nice returns a program's nice value. Readers take precedence over the worker's scans and over plugins, which are
// third-party programs.
func Nice(program string) int {
	if program == worker || program == plugin {
		return 10
	}
	return 0
}

// operatorFile holds the settings of functions/operator while the system runs, for make operator.
const operatorFile = "operator.env"

// writeOperator writes them in shell syntax. They contain passwords, so only this account may read the file.
func (s *Stack) writeOperator(context.Context) error {
	var text strings.Builder
	names := []string{"DATABASE_SYSTEM_URL", "REDIS_URL", "MEDIA_S3_ENDPOINT", "MEDIA_BUCKET", "S3_PATH_STYLE", "AWS_REGION",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED", "CREDENTIALS_KEY"}
	for _, pair := range append(s.baseEnvironment(), "CREDENTIALS_KEY="+s.secrets.CredentialsKey) {
		if name, value, _ := strings.Cut(pair, "="); slices.Contains(names, name) {
			fmt.Fprintf(&text, "%s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
		}
	}
	if err := os.WriteFile(filepath.Join(s.config.DataDir, operatorFile), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("settings of the operator: %w", err)
	}
	return nil
}

// removeOperator removes the file when the system stops.
func (s *Stack) removeOperator() error {
	err := os.Remove(filepath.Join(s.config.DataDir, operatorFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// migrateSpec applies the schema, registers the library roots and creates the first administrator.
func (s *Stack) migrateSpec() supervise.Spec {
	env := append(s.baseEnvironment(), "DATABASE_OWNER_URL="+s.postgres.OwnerURL())
	if s.config.Admin != "" {
		env = append(env, "LONGBOX_ADMIN="+s.config.Admin)
	}
	return supervise.Spec{
		Name: migrate, Path: filepath.Join(s.config.Programs, migrate), Env: env, Dir: s.scratch, Account: s.account,
		Stop: syscall.SIGTERM, Grace: 10 * time.Second, Orphan: syscall.SIGKILL,
	}
}
