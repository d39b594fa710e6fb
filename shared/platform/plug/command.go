package plug

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Commands are the programs that may run as plugins: names, which are looked up in PATH, absolute paths, and folders
// with a trailing slash, below which every program is allowed. The operator decides: whoever manages plugins can run
// anything that these programs run.
type Commands []string

// Validate returns an error that names an invalid entry.
func (c Commands) Validate() error {
	for _, item := range c {
		clean := strings.TrimSuffix(item, "/") == filepath.Clean("x" + item)[1:]
		if item == "" || item != strings.TrimSpace(item) ||
			strings.ContainsRune(item, '/') && !(filepath.IsAbs(item) && clean) || strings.ContainsRune(item, 0) {
			return fmt.Errorf("PLUGIN_COMMANDS: must be program names, absolute paths, or folders that end with a slash, separated by commas; %q is none of these", item)
		}
	}
	return nil
}

// Allow reports whether a plugin may be started with a command.
func (c Commands) Allow(command string) bool {
	if command == "" || strings.ContainsRune(command, 0) || command != filepath.Clean(command) {
		return false
	}
	return slices.ContainsFunc(c, func(item string) bool {
		if strings.HasSuffix(item, "/") {
			return filepath.IsAbs(command) && strings.HasPrefix(command, item)
		}
		return command == item
	})
}

// String returns the list for users.
func (c Commands) String() string { return strings.Join(c, ", ") }

// AllowEnv reports whether a plugin may get an environment variable. Variables that change what its program runs are
// forbidden.
func AllowEnv(name string) bool {
	if name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	upper := strings.ToUpper(name)
	for _, prefix := range forbiddenPrefixes {
		if strings.HasPrefix(upper, prefix) && upper != "NODE_ENV" {
			return false
		}
	}
	return !slices.Contains(forbidden, upper) && !strings.HasSuffix(upper, "_PROXY")
}

// Variables that change what programs run or load, whom they trust, or how they connect.
var (
	forbiddenPrefixes = strings.Fields("LD_ DYLD_ PYTHON GIT_ AWS_ BASH_ NPM_CONFIG_ UV_ RUBY PERL NODE_ OPENSSL_ SSL_ SSLKEYLOG XDG_ PIP_ COREPACK_ CONDA_ GCONV_ GLIBC_ GOTRACE PLUGIN_ " +
		"GEM_ BUNDLE_ JAVA_ _JAVA_ JDK_ DOTNET_ CORECLR_ COMPLUS_ LUA_ PHP_INI_ BUN_ DENO_")
	forbidden = strings.Fields("PATH HOME TMPDIR SHELL ENV IFS PS4 SHELLOPTS BASHOPTS LOCPATH NLSPATH VIRTUAL_ENV REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GODEBUG GOCOVERDIR GOGC GOMEMLIMIT GOMAXPROCS " +
		"HOSTALIASES CLASSPATH PHPRC")
)

// EnvName returns the environment variable for a credential.
func EnvName(credential string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(credential))
}
