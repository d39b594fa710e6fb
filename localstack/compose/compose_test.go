// Package compose_test checks, without Docker, the services for people with Docker: that they have what Longbox's
// programs need, and that its scripts do what they say.
package compose_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
	"go.yaml.in/yaml/v3"

	edge "github.com/longbox/longbox/localstack/cdn"
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/app/plugin"
	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/app/worker"
)

type composition struct {
	Services map[string]struct {
		Image, User string
		Environment map[string]string
		Volumes     []string
		Ports       []string
		Network     string `yaml:"network_mode"`
		Healthcheck *struct{ Test []string }
	}
	Volumes map[string]any
}

func read(t *testing.T) (composition, string) {
	t.Helper()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c composition
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c, string(text)
}

func TestServices(t *testing.T) {
	t.Parallel()
	c, _ := read(t)
	if got := slices.Sorted(maps.Keys(c.Services)); !slices.Equal(got, []string{"cdn", "init", "localstack", "minio", "postgres", "redis"}) {
		t.Errorf("services %v", got)
	}
	image := regexp.MustCompile(`^[a-z0-9/.-]+:[A-Za-z0-9.-]*[0-9]+\.?[A-Za-z0-9.-]*\$\{[A-Z]+_DIGEST:-\}$`)
	for name, s := range c.Services {
		if !image.MatchString(s.Image) {
			t.Errorf("%s: the image %s is not fixed by a version and, where wanted, a digest", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to other machines", name, p)
			}
		}
		if s.Healthcheck == nil && name != "init" {
			t.Errorf("%s has no health check", name)
		}
		for key, value := range s.Environment {
			if regexp.MustCompile(`PASSWORD|SECRET|KEY|ROOT_USER`).MatchString(key) && !regexp.MustCompile(`^\$\{[A-Z_]+:\?[^}]+\}$`).MatchString(value) {
				t.Errorf("%s: %s=%s is a secret for everybody", name, key, value)
			}
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[source]; !ok && !strings.ContainsAny(source, "./$") {
				t.Errorf("%s: there is no volume %s", name, source)
			}
		}
	}
}

// settings has compose.sh write settings into a folder, and returns them by file.
func settings(t *testing.T, dir string) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	cmd := exec.Command("bash", "compose.sh", "settings")
	cmd.Env = append(os.Environ(), "DATA_DIR="+dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, name := range []string{"services", "settings", "cdn", "plugin"} {
		path := filepath.Join(dir, name+".env")
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", path, info, err)
		}
		// They are read by a shell, as compose.sh does.
		text, err := exec.Command("env", "-i", "bash", "-c", `set -a; . "$1"; exec env -0`, "bash", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = map[string]string{}
		for pair := range strings.SplitSeq(strings.TrimRight(string(text), "\x00"), "\x00") {
			if key, value, _ := strings.Cut(pair, "="); !slices.Contains([]string{"PWD", "SHLVL", "_"}, key) {
				out[name][key] = value
			}
		}
	}
	return out
}

func TestSettings(t *testing.T) {
	first, again, other := t.TempDir(), "", t.TempDir()
	s := settings(t, first)
	before, err := os.ReadFile(filepath.Join(first, "services.env"))
	if err != nil {
		t.Fatal(err)
	}
	settings(t, first)
	after, err := os.ReadFile(filepath.Join(first, "services.env"))
	if again = string(after); err != nil || again != string(before) {
		t.Error("a second start made other secrets")
	}
	if settings(t, other)["settings"]["AUTH_SIGNING_KEY"] == s["settings"]["AUTH_SIGNING_KEY"] {
		t.Error("two installations have the same secrets")
	}
	page, err := os.ReadFile("../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	// Only compose.yaml and init.sh read these.
	ours := []string{"POSTGRES_PASSWORD", "REDIS_PASSWORD", "LIBRARY_BUCKET", "CDN_FOLDER"}
	for _, file := range s {
		for name := range file {
			known[name] = true
			if !slices.Contains(ours, name) && !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("%s is no setting of operator.md", name)
			}
		}
	}
	c, text := read(t)
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(text, -1) {
		if !known[m[1]] && !strings.HasSuffix(m[1], "_DIGEST") {
			t.Errorf("compose.yaml reads %s, which compose.sh does not make", m[1])
		}
	}
	for service, name := range map[string]string{"localstack": "LIBRARY_S3_ENDPOINT", "minio": "MEDIA_S3_ENDPOINT", "postgres": "DATABASE_URL", "redis": "REDIS_URL"} {
		port := strings.Split(c.Services[service].Ports[0], ":")[1]
		if !strings.Contains(s["settings"][name], "@127.0.0.1:"+port) && !strings.HasPrefix(s["settings"][name], "http://127.0.0.1:"+port) {
			t.Errorf("%s: %s is not where %s listens (%s)", name, s["settings"][name], service, port)
		}
	}
	maps.Copy(s["cdn"], s["settings"])
	start(t, s["settings"], api.New)
	start(t, s["cdn"], media.New)
	start(t, s["settings"], worker.New)
	start(t, s["settings"], scheduler.New)
	checkPlugin(t, s)
}

// checkPlugin checks that the program that runs plugins starts with its settings, and that these contain no secret of
// the other programs.
func checkPlugin(t *testing.T, s map[string]map[string]string) {
	t.Helper()
	c, err := env.ParseAsWithOptions[plugin.Config](env.Options{Environment: s["plugin"]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plugin.New(c); err != nil {
		t.Error(err)
	}
	if c.Token == "" || c.Token != s["settings"]["PLUGIN_TOKEN"] || !c.Host.Confine || s["settings"]["PLUGIN_URL"] != "http://127.0.0.1:8086" {
		t.Errorf("plugin has %+v, the others %v", c, s["settings"])
	}
	for name := range s["plugin"] {
		if !strings.HasPrefix(name, "PLUGIN_") {
			t.Errorf("plugin is given %s", name)
		}
	}
}

// Settings from before plugins existed get the settings for plugins, once.
func TestSettingsOfBeforePlugins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := settings(t, dir)
	if err := os.Remove(filepath.Join(dir, "plugin.env")); err != nil {
		t.Fatal(err)
	}
	second := settings(t, dir)
	if second["settings"]["AUTH_SIGNING_KEY"] != first["settings"]["AUTH_SIGNING_KEY"] || second["plugin"]["PLUGIN_TOKEN"] != second["settings"]["PLUGIN_TOKEN"] {
		t.Error("other settings changed, or those of plugins do not fit")
	}
}

// start reads a program's configuration from variables and creates the program, which does not connect yet.
func start[C, P any](t *testing.T, variables map[string]string, program func(C) (P, *app.Base, error)) {
	t.Helper()
	c, err := env.ParseAsWithOptions[C](env.Options{Environment: variables})
	if err != nil {
		t.Errorf("%T: %v", c, err)
		return
	}
	_, base, err := program(c)
	if err != nil {
		t.Errorf("%T: %v", c, err)
		return
	}
	base.Close()
}

func TestEdge(t *testing.T) {
	nginx, err := edge.Program()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a clone; {of} mine")
	s := settings(t, dir)
	maps.Copy(s["cdn"], s["settings"])
	cmd := exec.Command("go", "run", "../cdn/edge", "-dir", dir, "-write")
	cmd.Env = os.Environ()
	for name, value := range s["cdn"] {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(dir, "nginx.conf")
	if out, err := exec.Command(nginx, "-t", "-p", dir, "-c", path, "-e", filepath.Join(dir, "error.log")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "listen 127.0.0.1:8090;") || !strings.Contains(string(text), "server 127.0.0.1:8082;") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"compose.sh", "init.sh"} {
		if out, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
}
