package plug

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Commands are the programs that plugins may be started with: names, which are looked for in PATH, absolute paths, and
// folders that end with a slash, below which every program is allowed. They are the operator's word: whoever manages
// plugins runs what these programs run.
type Commands []string

// Validate names what is neither.
func (c Commands) Validate() error {
	for _, item := range c {
		clean := strings.TrimSuffix(item, "/") == filepath.Clean("x" + item)[1:]
		if item == "" || item != strings.TrimSpace(item) || strings.ContainsRune(item, '/') && !(filepath.IsAbs(item) && clean) || strings.ContainsRune(item, 0) {
			return fmt.Errorf("PLUGIN_COMMANDS: must be names of programs, absolute paths, or folders that end with a slash, with commas between; one is %q", item)
		}
	}
	return nil
}

// Allow tells whether a plugin may be started with a command.
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

// String is the list for people.
func (c Commands) String() string { return strings.Join(c, ", ") }

// AllowEnv tells whether a plugin may be given a variable of its environment: none that changes what its program runs.
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

// What changes what programs run or load, whom they trust, and by which way they go out.
var (
	forbiddenPrefixes = strings.Fields("LD_ DYLD_ PYTHON GIT_ AWS_ BASH_ NPM_CONFIG_ UV_ RUBY PERL NODE_ OPENSSL_ SSL_ SSLKEYLOG XDG_ PIP_ COREPACK_ CONDA_ GCONV_ GLIBC_ GOTRACE PLUGIN_ " +
		"GEM_ BUNDLE_ JAVA_ _JAVA_ JDK_ DOTNET_ CORECLR_ COMPLUS_ LUA_ PHP_INI_ BUN_ DENO_")
	forbidden = strings.Fields("PATH HOME TMPDIR SHELL ENV IFS PS4 SHELLOPTS BASHOPTS LOCPATH NLSPATH VIRTUAL_ENV REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GODEBUG GOCOVERDIR GOGC GOMEMLIMIT GOMAXPROCS " +
		"HOSTALIASES CLASSPATH PHPRC")
)

// EnvName is the name that a credential has in a plugin's environment.
func EnvName(credential string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(credential))
}
