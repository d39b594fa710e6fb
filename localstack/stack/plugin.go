package stack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pluginCommands are the programs that may run as plugins, unless the user sets others.
const pluginCommands = "node,npx,python,python3,uv,uvx"

// toPlugins returns the settings of programs that call plugins: how to reach them, and the key of their credentials.
func (s *Stack) toPlugins() []string {
	return []string{"PLUGIN_URL=http://" + s.address(plugin), "PLUGIN_TOKEN=" + s.token, orPerson("PLUGIN_COMMANDS", pluginCommands),
		"CREDENTIALS_KEY=" + s.secrets.CredentialsKey}
}

// ofPlugin reports whether the plugin program gets a variable of this process. It needs few, and plugins may find those
// that it has.
func ofPlugin(name string) bool {
	return slices.Contains([]string{"PATH", "LANG", "TZ", "LOG_LEVEL", "SSL_CERT_FILE", "SSL_CERT_DIR"}, name) ||
		strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "PLUGIN_") && !foreign(name)
}

// pluginEnvironment returns its environment. The only secret is the token of its callers.
func (s *Stack) pluginEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool { return !ofPlugin(nameOf(pair)) })
	return append(env, "LISTEN_ADDR="+s.address(plugin), "PLUGIN_TOKEN="+s.token, "PLUGIN_DATA_DIR="+s.plugins(),
		orPerson("PLUGIN_COMMANDS", pluginCommands), orPerson("PLUGIN_CONFINE", "true"),
		"HOME="+s.scratch, "TMPDIR="+s.scratch, Processors(plugin))
}

// plugins returns the folder for the data of plugins.
func (s *Stack) plugins() string { return filepath.Join(s.config.DataDir, "plugins") }

// orPerson returns a setting with this process's value, even if empty, or else with our default.
func orPerson(name, otherwise string) string {
	if value, set := os.LookupEnv(name); set {
		return name + "=" + value
	}
	return name + "=" + otherwise
}
