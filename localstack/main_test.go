package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/shared/platform/confine"
)

func TestStartUseStopStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0o755)
	books := filepath.Join(s.dir, "Meine Bücher")
	writeBooks(t, books)
	before := snapshot(t, books)

	c := start(t, s, "LIBRARY="+books, "LONGBOX_ADMIN=admin:secret-word")
	env := given(t, c, s)
	checkRoutes(t, c)
	checkEnvironment(t, c, env, books)
	checkPlugin(t, s, env, "node,npx,python,python3,uv,uvx", "true")
	if dir := env["PDF_CACHE_DIR"]; dir != filepath.Join(s.data, "pdfium") {
		t.Errorf("PDF_CACHE_DIR=%q", dir)
	} else if info, err := os.Stat(dir); err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != c.get(t, "/health").UID {
		t.Errorf("PDF_CACHE_DIR: %v, or it belongs to another user than the programs", err)
	}
	if admin := checkDatabase(t, env, 1); admin != "admin:secret-word" {
		t.Errorf("migrate was given the administrator %q", admin)
	}
	checkRedis(t, env, false)
	checkLibrary(t, env)
	checkMedia(t, env, false)
	checkSecondStart(t, s)
	checkKilledWorker(t, c, s)
	if out := c.stop(t); strings.Contains(out, "secret-word") ||
		!strings.Contains(out, "make run has no CDN and ignores DELIVERY, ORIGIN_SECRET\n") ||
		!strings.Contains(out, " migrate WARN a library is in no folder\n") ||
		strings.Contains(out, "cannot enter "+s.dir) || !strings.Contains(out, "Create the administrator: curl") || !strings.Contains(out, "stopped; all data is in") {
		t.Errorf("it printed %s", out)
	}
	if left := children(t, s); len(left) != 0 {
		t.Errorf("children left: %v", left)
	}
	if diff := cmp.Diff(before, snapshot(t, books)); diff != "" {
		t.Errorf("the library folder changed: %s", diff)
	}

	c = start(t, s, "LIBRARY="+books, "PDF_CACHE_DIR=", "PLUGIN_COMMANDS=/opt/plugins/", "PLUGIN_CONFINE=false")
	again := given(t, c, s)
	checkPlugin(t, s, again, "/opt/plugins/", "false")
	if again["PLUGIN_TOKEN"] == env["PLUGIN_TOKEN"] {
		t.Error("PLUGIN_TOKEN is that of the start before")
	}
	if dir, ok := again["PDF_CACHE_DIR"]; !ok || dir != "" {
		t.Errorf("PDF_CACHE_DIR, set to nothing, became %q", dir)
	}
	for _, name := range []string{"AUTH_SIGNING_KEY", "LIBRARY_ROOTS", "AWS_SECRET_ACCESS_KEY", "CREDENTIALS_KEY"} {
		if again[name] != env[name] {
			t.Errorf("%s changed from one start to the next", name)
		}
	}
	checkDatabase(t, again, 2)
	checkMedia(t, again, true)
	checkRedis(t, again, true)
	checkOperator(t, s, again)
	checkLinks(t, again, books)
	c.stop(t)
	if _, err := os.Stat(filepath.Join(s.data, "operator.env")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("operator.env after the stop: %v", err)
	}
}

// checkOperator reads the operator's settings as make operator does. They must equal those of the functions.
func checkOperator(t *testing.T, s site, env map[string]string) {
	t.Helper()
	file := filepath.Join(s.data, "operator.env")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("operator.env: %v, %v", info, err)
	}
	for _, name := range []string{"DATABASE_SYSTEM_URL", "REDIS_URL", "MEDIA_S3_ENDPOINT", "MEDIA_BUCKET", "AWS_SECRET_ACCESS_KEY", "S3_PATH_STYLE", "CREDENTIALS_KEY"} {
		out, err := exec.Command("sh", "-c", `set -a; . "$0"; printenv "$1"`, file, name).Output()
		if err != nil || strings.TrimSuffix(string(out), "\n") != env[name] {
			t.Errorf("operator.env has %s=%q, the functions %q: %v", name, out, env[name], err)
		}
	}
}

func TestStartAfterKill(t *testing.T) {
	t.Parallel()
	mode := os.FileMode(0o755)
	if account.CanReadAll() || os.Geteuid() != 0 {
		mode = 0o700 // Like a clone below /root, which the user of the children cannot enter.
	}
	s := newSite(t, mode)
	c := start(t, s)
	if closed := account.CanReadAll() && os.Geteuid() == 0; closed != strings.Contains(c.output(), "cannot enter "+s.dir+", so every program may read all files") {
		t.Errorf("in a closed folder (%v), it printed %s", closed, c.output())
	}
	orphans := children(t, s)
	if len(orphans) != 10 {
		t.Errorf("%d children, want 4 servers and 6 functions: %v", len(orphans), orphans)
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-c.ended; err == nil {
		t.Fatal("it was not killed")
	}
	for name, child := range orphans {
		eventually(t, name+" outlives localstack", func() bool { return !runs(child.PID) })
	}
	c = start(t, s)
	env := given(t, c, s)
	checkDatabase(t, env, 2)
	if !strings.Contains(env["LIBRARY_ROOTS"], filepath.Join(s.data, "sample")+"=sample-") {
		t.Errorf("no sample library without LIBRARY: %s", env["LIBRARY_ROOTS"])
	}
	// If the terminal closes, localstack ends in the same orderly way as after Ctrl-C. Under nohup it does not notice
	// that.
	hangUp := syscall.SIGHUP
	if signal.Ignored(hangUp) {
		hangUp = syscall.SIGINT
	}
	if err := c.cmd.Process.Signal(hangUp); err != nil {
		t.Fatal(err)
	}
	if err := <-c.ended; err != nil {
		t.Errorf("after a hang-up: %v", err)
	}
	if left := children(t, s); len(left) != 0 {
		t.Errorf("children left: %v", left)
	}
}

// After a power loss, a file of Redis may end in zeros or be damaged in another way.
func TestStartWithDamagedRedis(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0o755)
	start(t, s).stop(t)
	files, err := filepath.Glob(filepath.Join(s.data, "redis", "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.WriteFile(files[0], make([]byte, 4096), 0); err != nil {
		t.Fatal(err)
	}
	c := start(t, s)
	checkRedis(t, given(t, c, s), false)
	if out := c.stop(t); !strings.Contains(out, "starts empty; the damaged files are in "+filepath.Join(s.data, "redis")) {
		t.Errorf("it printed %s", out)
	}
}

func TestOneLineSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0o755)
	file := filepath.Join(s.dir, "book.cbz")
	breakProgram := func(name string) func(t *testing.T) {
		return func(t *testing.T) {
			mark := filepath.Join(s.programs, name+".broken")
			if err := os.WriteFile(mark, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(mark) })
		}
	}
	cases := []struct {
		name    string
		prepare func(t *testing.T)
		env     []string
		want    []string
	}{
		{"folder missing", nil, []string{"LIBRARY=/nonexistent/books"}, []string{"/nonexistent/books does not exist: check LIBRARY"}},
		{"file for a folder", func(t *testing.T) {
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, []string{"LIBRARY=" + file}, []string{"is a file: name the folder"}},
		{"bad port", nil, []string{"PORT=99999"}, []string{"PORT: must be a port up to 65535, or 0 for a free one, is 99999"}},
		{"bad proxies", nil, []string{"TRUSTED_PROXIES=17"}, []string{"TRUSTED_PROXIES: must be the number of reverse proxies in front of Longbox, 0 to 16, is 17"}},
		{"no number", nil, []string{"PORT=http"}, []string{"a setting is wrong", "PORT"}},
		{"no address", nil, []string{"PUBLIC_URL=foo"}, []string{"PUBLIC_URL: must be an address like"}},
		{"migration fails", breakProgram("migrate"), nil, []string{"migrate failed", "schema version 7 is from the future", "migrate.log"}},
		{"function dies", breakProgram("worker"), nil, []string{"worker ended at start (exit status 1)", "out of tea", "worker.log"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { // Not parallel: the cases share the site.
			if c.prepare != nil {
				c.prepare(t)
			}
			run := begin(t, s, c.env...)
			if run.url != "" {
				t.Fatal("it became ready")
			}
			if err := <-run.ended; err == nil {
				t.Error("it ended without an error")
			}
			lines := strings.Split(strings.TrimSpace(run.output()), "\n")
			last := lines[len(lines)-1]
			for _, want := range c.want {
				if !strings.Contains(last, want) {
					t.Errorf("last line %q lacks %q", last, want)
				}
			}
		})
	}
	if left := children(t, s); len(left) != 0 {
		t.Errorf("children left: %v", left)
	}
}

func writeBooks(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "Series"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Series", "漫画 01.cbz"), []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// snapshot records everything about a folder's files except when they were read.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Stat(path, &st); err != nil {
			return err
		}
		got[path] = fmt.Sprint(st.Ino, st.Size, st.Mode, st.Uid, st.Nlink, st.Mtim, st.Ctim)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func checkRoutes(t *testing.T, c *command) {
	t.Helper()
	for path, want := range map[string]string{
		"/api/v1/books": "api", "/api/v1/events/stream": "sse-relay", "/api/v1/books/1/pages/1": "media", "/health": "api", "/call": "api",
	} {
		got := c.get(t, path)
		if got.Name != want || got.Path != path || got.Header.Get("X-Forwarded-For") != "127.0.0.1" {
			t.Errorf("%s was answered by %s at %s for %q, want %s", path, got.Name, got.Path, got.Header.Get("X-Forwarded-For"), want)
		}
		if got.UID == 0 {
			t.Errorf("%s runs as root", got.Name)
		}
	}
}

// given returns api's variables, and checks that no program gets a secret that it does not need.
func given(t *testing.T, c *command, s site) map[string]string {
	t.Helper()
	env := c.get(t, "/health").Env // variables of api
	const system, key, token, sealing = "DATABASE_SYSTEM_URL", "AUTH_SIGNING_KEY", "PLUGIN_TOKEN", "CREDENTIALS_KEY"
	for program, needless := range map[string][]string{"api": {system}, "media": {system, token, sealing}, "worker": {key}, "scheduler": {key, token, sealing},
		"sse-relay": {system, key, token, sealing, "DATABASE_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}} {
		for name, value := range environ(t, s, program) {
			if slices.Contains(needless, name) {
				t.Errorf("%s is given %s", program, name)
			}
			if program == "worker" && name == system {
				env[name] = value
			}
		}
	}
	return env
}

// environ reads the environment of a running program, as any process of the same user can.
func environ(t *testing.T, s site, program string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", children(t, s)[program].PID))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for pair := range strings.SplitSeq(strings.TrimRight(string(raw), "\x00"), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// checkPlugin checks that only api and worker know how to reach the program that runs plugins, and that this program
// has no valuable secret.
func checkPlugin(t *testing.T, s site, api map[string]string, commands, confine string) {
	t.Helper()
	got := environ(t, s, "plugin")
	for _, env := range []map[string]string{api, environ(t, s, "worker")} {
		if env["PLUGIN_URL"] != "http://"+got["LISTEN_ADDR"] || env["PLUGIN_TOKEN"] != got["PLUGIN_TOKEN"] || len(got["PLUGIN_TOKEN"]) < 26 {
			t.Errorf("%s with the token %q is not where plugin listens: %v", env["PLUGIN_URL"], env["PLUGIN_TOKEN"], got)
		}
		if env["PLUGIN_COMMANDS"] != commands || env["CREDENTIALS_KEY"] != api["CREDENTIALS_KEY"] {
			t.Errorf("commands %q, want %q, or another key of credentials than the api's", env["PLUGIN_COMMANDS"], commands)
		}
	}
	data := filepath.Join(s.data, "plugins")
	if got["PLUGIN_COMMANDS"] != commands || got["PLUGIN_CONFINE"] != confine || got["PLUGIN_DATA_DIR"] != data {
		t.Errorf("plugin is given %v, want the commands %q, confine %q and the folder %s", got, commands, confine, data)
	}
	for name := range got {
		if !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "GOMAXPROCS", "LISTEN_ADDR", "PLUGIN_TOKEN", "PLUGIN_COMMANDS", "PLUGIN_CONFINE", "PLUGIN_DATA_DIR",
			"PWD", "OLDPWD", "SHLVL", "_"}, name) { // the last four are set by the shell that enters a closed folder
			t.Errorf("plugin is given %s", name)
		}
	}
	if info, err := os.Stat(data); err != nil || info.Mode().Perm() != 0o700 || int(info.Sys().(*syscall.Stat_t).Uid) != uid(t, s, "plugin") {
		t.Errorf("the plugins' folder: %v, %v: it must be the programs' alone", info, err)
	}
}

// uid returns the user that a program runs as.
func uid(t *testing.T, s site, program string) int {
	t.Helper()
	info, err := os.Stat(fmt.Sprintf("/proc/%d", children(t, s)[program].PID))
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

func checkEnvironment(t *testing.T, c *command, env map[string]string, books string) {
	t.Helper()
	for _, name := range names {
		if env[name] == "" {
			t.Errorf("%s is not set", name)
		}
	}
	for _, name := range kept {
		if v, ok := env[name]; ok {
			t.Errorf("%s=%s reaches the functions", name, v)
		}
	}
	if env["PUBLIC_URL"] != c.url || env["SINGLE_TENANT"] != "true" || env["TRUSTED_PROXIES"] != "1" {
		t.Errorf("environment %v does not fit %s", env, c.url)
	}
	if !strings.HasPrefix(env["LIBRARY_ROOTS"], books+"=meine-b-cher-") {
		t.Errorf("LIBRARY_ROOTS=%s", env["LIBRARY_ROOTS"])
	}
}

// checkDatabase checks the roles and counts the starts recorded by migrate. It returns the administrator that one start
// was given.
func checkDatabase(t *testing.T, env map[string]string, starts int) (admin string) {
	t.Helper()
	for variable, role := range map[string]string{"DATABASE_URL": "longbox_app", "DATABASE_SYSTEM_URL": "longbox_system"} {
		conn, err := pgx.Connect(t.Context(), env[variable])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var user, owner, encoding string
		var special bool
		var n int
		err = conn.QueryRow(t.Context(), `select current_user, pg_get_userbyid(d.datdba), pg_encoding_to_char(d.encoding),
			r.rolsuper or r.rolbypassrls or r.rolcreaterole or r.rolcreatedb, (select count(*) from starts), (select max(admin) from starts)
			from pg_database d, pg_roles r where d.datname = current_database() and r.rolname = current_user`).
			Scan(&user, &owner, &encoding, &special, &n, &admin)
		if err != nil {
			t.Fatal(err)
		}
		if user != role || owner != "longbox_owner" || encoding != "UTF8" || special || n != starts {
			t.Errorf("%s: user %s (special rights %v), owner %s, %s, %d starts, want %d", variable, user, special, owner, encoding, n, starts)
		}
		if _, err := conn.Exec(t.Context(), "create table public.mine (x int)"); err == nil {
			t.Errorf("%s may create tables", role)
		}
	}
	return admin
}

// checkRedis writes a value, or reads the value that an earlier start wrote.
func checkRedis(t *testing.T, env map[string]string, written bool) {
	t.Helper()
	options, err := redis.ParseURL(env["REDIS_URL"])
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(options)
	defer c.Close()
	if written {
		if v, err := c.Get(t.Context(), "kept").Result(); v != "yes" {
			t.Errorf("Redis kept %q, %v", v, err)
		}
	} else if err := c.Set(t.Context(), "kept", "yes", 0).Err(); err != nil {
		t.Error(err)
	}
	open := redis.NewClient(&redis.Options{Network: options.Network, Addr: options.Addr})
	defer open.Close()
	if err := open.Ping(t.Context()).Err(); err == nil {
		t.Error("Redis answers without a password")
	}
}

func client(env map[string]string, endpoint string) *s3.Client {
	return s3.New(s3.Options{Region: env["AWS_REGION"], BaseEndpoint: aws.String(env[endpoint]), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], "")})
}

func checkLibrary(t *testing.T, env map[string]string) {
	t.Helper()
	c := client(env, "LIBRARY_S3_ENDPOINT")
	_, bucket, _ := strings.Cut(env["LIBRARY_ROOTS"], "=")
	list, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	const key = "Series/漫画 01.cbz"
	if len(list.Contents) != 1 || *list.Contents[0].Key != key {
		t.Errorf("listing: %+v", list.Contents)
	}
	got, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String(key), Range: aws.String("bytes=2-4")})
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if *got.ContentLength != 3 {
		t.Errorf("a range of 3 bytes has %d", *got.ContentLength)
	}
	if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String(key), Body: strings.NewReader("x")}); err == nil {
		t.Error("a book was overwritten")
	}
	if _, err := c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: aws.String(key)}); err == nil {
		t.Error("a book was deleted")
	}
}

// checkLinks checks access through symbolic links, before and after another folder replaces the library's folder.
func checkLinks(t *testing.T, env map[string]string, books string) {
	t.Helper()
	if err := confine.Possible("../.tools/bin/versitygw"); err != nil {
		t.Logf("links are not kept in the library: %v", err)
		return
	}
	c := client(env, "LIBRARY_S3_ENDPOINT")
	_, bucket, _ := strings.Cut(env["LIBRARY_ROOTS"], "=")
	get := func(key string) (string, error) {
		out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
		if err != nil {
			return "", err
		}
		defer out.Body.Close()
		b, err := io.ReadAll(out.Body)
		return string(b), err
	}
	aside := books + " aside"
	for _, step := range []error{
		os.WriteFile(books+".txt", []byte("outside"), 0o644),
		os.Rename(books, aside),
		os.Mkdir(books, 0o755),
		os.WriteFile(filepath.Join(books, "inside.txt"), []byte("inside"), 0o644),
		os.Symlink("inside.txt", filepath.Join(books, "in.cbz")),
		os.Symlink(books+".txt", filepath.Join(books, "out.cbz")),
		os.Symlink(filepath.Dir(books), filepath.Join(books, "folder")),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	eventually(t, "another folder in the place of the library's is not served", func() bool {
		got, err := get("in.cbz")
		return err == nil && got == "inside"
	})
	for _, key := range []string{"out.cbz", "folder/" + filepath.Base(books) + ".txt"} {
		if got, err := get(key); err == nil {
			t.Errorf("%s leads out of the library: %q", key, got)
		}
	}
	if err := errors.Join(os.RemoveAll(books), os.Rename(aside, books)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the library's own folder is not served again", func() bool {
		_, err := get("Series/漫画 01.cbz")
		return err == nil
	})
}

// checkMedia writes an object, or reads the object that an earlier start wrote.
func checkMedia(t *testing.T, env map[string]string, written bool) {
	t.Helper()
	c := client(env, "MEDIA_S3_ENDPOINT")
	bucket, key := env["MEDIA_BUCKET"], "covers/1.webp"
	if written {
		got, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
		if err != nil || aws.ToString(got.ETag) == "" {
			t.Errorf("an object of the earlier start: %v, ETag %v", err, got)
		}
		return
	}
	if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("cover")}); err != nil {
		t.Error(err)
	}
}

func checkSecondStart(t *testing.T, s site) {
	t.Helper()
	second := begin(t, s)
	if err := <-second.ended; err == nil || !strings.Contains(second.output(), "another Longbox is running on DATA_DIR "+s.data) {
		t.Errorf("a second start on the same data: %v: %s", err, second.output())
	}
}

func checkKilledWorker(t *testing.T, c *command, s site) {
	t.Helper()
	old := children(t, s)["worker"].PID
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a killed worker is not started again", func() bool {
		pid := children(t, s)["worker"].PID
		return pid != old && pid != 0
	})
	if !strings.Contains(c.output(), "worker ended (signal: killed)") {
		t.Errorf("nothing said about the killed worker: %s", c.output())
	}
}

// eventually waits until f returns true, for at most 20 s.
func eventually(t *testing.T, otherwise string, f func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(otherwise)
		}
	}
}

// runs reports whether a process is alive. A zombie is not.
func runs(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(raw), ") Z ")
}
