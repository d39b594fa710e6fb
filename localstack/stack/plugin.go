package stack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pluginCommands are what plugins may be started with, unless a person says otherwise.
const pluginCommands = "node,npx,python,python3,uv,uvx"

// toPlugins is how the programs that ask plugins reach them, and the key of the credentials that these have.
func (s *Stack) toPlugins() []string {
	return []string{"PLUGIN_URL=http://" + s.address(plugin), "PLUGIN_TOKEN=" + s.token, orPerson("PLUGIN_COMMANDS", pluginCommands),
		"CREDENTIALS_KEY=" + s.secrets.CredentialsKey}
}

// ofPlugin tells whether the program that runs programs of others is given a variable of this process. It has no use
// for most, and what it has, those may find.
func ofPlugin(name string) bool {
	return slices.Contains([]string{"PATH", "LANG", "TZ", "LOG_LEVEL", "SSL_CERT_FILE", "SSL_CERT_DIR"}, name) ||
		strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "PLUGIN_") && !foreign(name)
}

// pluginEnvironment is what it is given: no secret but the token of who may ask it.
func (s *Stack) pluginEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool { return !ofPlugin(nameOf(pair)) })
	return append(env, "LISTEN_ADDR="+s.address(plugin), "PLUGIN_TOKEN="+s.token, "PLUGIN_DATA_DIR="+s.plugins(),
		orPerson("PLUGIN_COMMANDS", pluginCommands), orPerson("PLUGIN_CONFINE", "true"),
		"HOME="+s.scratch, "TMPDIR="+s.scratch, Processors(plugin))
}

// plugins is the folder that plugins keep their data in.
func (s *Stack) plugins() string { return filepath.Join(s.config.DataDir, "plugins") }

// orPerson is a setting as this process was given it, also empty, or else with a value of ours.
func orPerson(name, otherwise string) string {
	if value, set := os.LookupEnv(name); set {
		return name + "=" + value
	}
	return name + "=" + otherwise
}
