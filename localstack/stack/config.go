package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/hops"
)

// Config holds the user's settings. All have defaults.
type Config struct {
	// Port is the port of the whole system; 0 means any free one.
	Port int `env:"PORT" envDefault:"8080"`
	// Bind is the address to listen on; 0.0.0.0 allows other machines.
	Bind string `env:"BIND" envDefault:"127.0.0.1"`
	// DataDir holds all persistent data.
	DataDir string `env:"DATA_DIR" envDefault:".data"`
	// Library lists the folders to serve. Without any there is a sample library.
	Library []string `env:"LIBRARY" envSeparator:":"`
	// Web is the folder of a web application to serve at the same address; empty: none.
	Web string `env:"WEB_DIR"`
	// Docs is the path of the API documentation, if enabled.
	Docs string `env:"API_DOCS_PATH" envDefault:"/docs"`
	// Admin is passed to migrate, which creates the first administrator from it.
	Admin string `env:"LONGBOX_ADMIN"`
	// PublicURL is the public address; if empty, it is built from the port.
	PublicURL string `env:"PUBLIC_URL"`
	// TrustedProxies is the number of reverse proxies in front that report the client.
	TrustedProxies int `env:"TRUSTED_PROXIES" envDefault:"0"`
	// Programs is the folder of the functions' binaries, Tools the folder of the S3 gateway.
	Programs string `env:"LONGBOX_PROGRAMS" envDefault:".bin"`
	Tools    string `env:"LONGBOX_TOOLS" envDefault:".tools/bin"`
}

// Load reads the configuration from the environment.
func Load() (Config, error) {
	c, err := environ.Parse[Config]()
	if err != nil {
		return Config{}, fmt.Errorf("a setting is wrong: %w", err)
	}
	if c.Port < 0 || c.Port > 65535 {
		return Config{}, fmt.Errorf("PORT: must be a port up to 65535, or 0 for a free one, is %d", c.Port)
	}
	if c.TrustedProxies < 0 || c.TrustedProxies > hops.Most {
		return Config{}, fmt.Errorf("TRUSTED_PROXIES: must be the number of reverse proxies in front of Longbox, 0 to %d, is %d", hops.Most, c.TrustedProxies)
	}
	if c.PublicURL != "" {
		if err := environ.PublicAddress("PUBLIC_URL", c.PublicURL); err != nil {
			return Config{}, err
		}
	}
	for _, path := range []*string{&c.DataDir, &c.Programs, &c.Tools} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return Config{}, fmt.Errorf("%s: %w", *path, err)
		}
		*path = abs
	}
	return c, nil
}

// ForgetServers removes the settings of other database servers (PG…) from this process's environment. The driver would
// use them for everything that a connection string leaves open.
func ForgetServers() error {
	for _, pair := range os.Environ() {
		if name := nameOf(pair); strings.HasPrefix(name, "PG") {
			if err := os.Unsetenv(name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// lock creates the data folder and locks it for this process until it ends.
func lock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("DATA_DIR %s cannot be created: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("DATA_DIR %s cannot be used: %w: start as the user who created it, on a writable disk, or choose another DATA_DIR", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, notLocked(dir, err)
	}
	return f, nil
}

// notLocked describes why dir could not be locked.
func notLocked(dir string, err error) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("DATA_DIR %s cannot be locked (%w): its disk does not support locks, or reports errors: "+
			"check it, or choose a DATA_DIR on a local disk", dir, err)
	}
	return fmt.Errorf("another Longbox is running on DATA_DIR %s: stop it, or choose another DATA_DIR and PORT", dir)
}
