package infra_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// buildx stands in for docker at the first deploy. A format that starts with the manifest without a function prints a
// table of it, as docker buildx does.
const buildx = `#!/bin/sh
case "$*" in
*"imagetools inspect"*"--format {{.Manifest"*) printf 'Name: golang\nDigest: sha256:0123\n\nManifests:\n' ;;
*"imagetools inspect"*"--format {{printf"*) printf '%s' "$DIGEST" ;;
esac
`

// The first deploy only writes the digests of the base images, and then ends. If a digest is unavailable it writes
// nothing. A later deploy writes missing digests.
func TestDeployFixesTheBaseImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile("deploy.sh")
	if err != nil {
		t.Fatal(err)
	}
	write("infra/deploy.sh", string(script))
	write("infra/parameters/small", "")
	write("infra/container/Dockerfile", "")
	write("bin/docker", buildx)
	for _, tool := range []string{"aws", "go", "git"} {
		write("bin/"+tool, "#!/bin/sh\n")
	}
	digests := []string{filepath.Join(dir, "infra/container/golang.digest"), filepath.Join(dir, "infra/container/node.digest")}
	deploy := func(digest string) string {
		cmd := exec.Command("bash", filepath.Join(dir, "infra/deploy.sh"))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "AWS_REGION=eu-west-1", "SIZE=small", "DIGEST="+digest)
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("went on without a digest: %s", out)
		}
		return string(out)
	}
	if out := deploy(""); !strings.Contains(out, "no digest") {
		t.Errorf("without an answer: %s", out)
	}
	for _, file := range digests {
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("without an answer %s was written: %v", file, err)
		}
	}
	wrote := func(file, out, want string) {
		t.Helper()
		if text, err := os.ReadFile(file); err != nil || string(text) != want+"\n" {
			t.Errorf("wrote %q (%v), want %s: %s", text, err, want, out)
		}
	}
	out := deploy("sha256:4567")
	for _, file := range digests {
		wrote(file, out, "sha256:4567")
	}
	if err := os.Remove(digests[1]); err != nil {
		t.Fatal(err)
	}
	out = deploy("sha256:89ab")
	wrote(digests[0], out, "sha256:4567")
	wrote(digests[1], out, "sha256:89ab")
}

// Some services create their role with the first resource of the account and need it at once, which usually fails the
// first deployment. So the script creates the missing ones long before.
func TestDeployMakesTheRolesOfServices(t *testing.T) {
	t.Parallel()
	roles := map[string]string{"AWSServiceRoleForECS": "ecs", "AWSServiceRoleForRDS": "rds", "AWSServiceRoleForApplicationAutoScaling_ECSService": "ecs.application-autoscaling"}
	for _, missing := range append(slices.Collect(maps.Keys(roles)), "none") {
		calls, out := deploy(t, map[string]string{
			"bin/aws": "#!/bin/sh\necho \"$*\" >>\"$(dirname \"$0\")/../asked\"\ncase \"$*\" in *\"get-role --role-name " + missing + "\") exit 1 ;; *StackStatus*) echo UPDATE_COMPLETE ;; esac\n",
			"bin/go":  "#!/bin/sh\nexit 3\n", // ends where go would build
		}, "")
		for role, service := range roles {
			want := 0
			if role == missing {
				want = 1
			}
			if got := strings.Count(calls, "iam create-service-linked-role --aws-service-name "+service+".amazonaws.com\n"); got != want {
				t.Errorf("missing %s: made %s %d times, want %d\n%s%s", missing, role, got, want, out, calls)
			}
		}
	}
}

// The values of another size would change the database of an existing stack. A stack whose rollback failed needs
// another command first.
func TestDeployAsksBeforeItChangesAStack(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"UPDATE_COMPLETE": "SIZE=small or SIZE=large", "UPDATE_ROLLBACK_FAILED": "continue-update-rollback --stack-name longbox"} {
		calls, out := deploy(t, map[string]string{"bin/aws": "#!/bin/sh\necho \"$*\" >>\"$(dirname \"$0\")/../asked\"\ncase \"$*\" in *StackStatus*) echo " + state + " ;; esac\n"}, "SIZE=")
		if !strings.Contains(out, want) || strings.Contains(calls, "package ") {
			t.Errorf("%s: %s, after %s", state, out, calls)
		}
	}
	if calls, out := deploy(t, map[string]string{"bin/aws": "#!/bin/sh\necho \"$*\" >>\"$(dirname \"$0\")/../asked\"\ncase \"$*\" in *StackStatus*) echo does not exist; exit 1 ;; *UnreservedConcurrent*) echo 1000 ;; esac\n"}, "SIZE="); !strings.Contains(calls, "cloudformation package") {
		t.Errorf("a new stack without SIZE: %s, after %s", out, calls)
	}
}

// aws zips the whole folder of the template for a function without CodeUri. So the folder has the parts of the stack,
// and nothing else of the clone: it holds keys and passwords.
func TestDeployPackagesOnlyTheStack(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"cdn.pem": "a key", "my.parameters": "Admin=a:b", ".git/config": "", ".data/operator.env": "", "dist/api.zip": "", "dist/media/bootstrap": "",
		"bin/aws": "#!/bin/sh\ncase \"$*\" in *StackStatus*) echo UPDATE_COMPLETE ;; *\"cloudformation package \"*) cd \"$(dirname \"$4\")\" && find . -type f >&2; exit 1 ;; esac\n",
	}
	want := map[string]bool{"template.yaml": true}
	templates, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range templates {
		files["infra/"+name], want["infra/"+name] = "", true
	}
	for _, function := range read(t, "template.yaml").resources("AWS::Serverless::Function") {
		if code := function.get("CodeUri").text(); code != "" {
			want[code+"bootstrap"] = true
		}
	}
	if len(want) < 15 {
		t.Fatalf("only %d parts of the stack found", len(want))
	}
	_, out := deploy(t, files, "")
	got := map[string]bool{}
	for line := range strings.SplitSeq(out, "\n") {
		if path, ok := strings.CutPrefix(line, "./"); ok {
			got[path] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("aws may pack %q, want %q\n%s", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), out)
	}
}

// Images of old releases are removed, also from repositories that an earlier release made.
func TestDeployForgetsOldImages(t *testing.T) {
	t.Parallel()
	calls, out := deploy(t, nil, "")
	for _, name := range []string{"media", "worker", "plugin", "sse-relay"} {
		call := regexp.MustCompile(`ecr put-lifecycle-policy --repository-name longbox/` + name + ` --lifecycle-policy-text (.+)\n`).FindStringSubmatch(calls)
		var policy struct {
			Rules []struct {
				RulePriority int
				Selection    struct {
					TagStatus, CountType string
					CountNumber          int
				}
				Action struct{ Type string }
			}
		}
		if call == nil || json.Unmarshal([]byte(call[1]), &policy) != nil || len(policy.Rules) != 1 {
			t.Fatalf("%s keeps every image: %s%s", name, calls, out)
		}
		if r := policy.Rules[0]; r.RulePriority != 1 || r.Selection.TagStatus != "any" || r.Selection.CountType != "imageCountMoreThan" || r.Selection.CountNumber != 30 || r.Action.Type != "expire" {
			t.Errorf("%s keeps %+v", name, r)
		}
	}
}

// Every line of the parameter file reaches the stack, also the last one without a line end, and without the carriage
// returns of editors on other systems.
func TestDeployReadsEveryLine(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n"} {
		calls, out := deploy(t, map[string]string{
			"infra/parameters/small": "LogDays=14\n", "key": "a key",
			"my.parameters": strings.ReplaceAll("# ours\n\nLogDays=7\nCdnKey=@key\nAlarmEmail=ops@example.org", "\n", end),
		}, "PARAMETERS=my.parameters")
		if !strings.Contains(calls, " LogDays=14 LogDays=7 CdnKey=a key AlarmEmail=ops@example.org ") {
			t.Errorf("lines end with %q: asked for %q\n%s", end, calls, out)
		}
	}
}

// A web application is uploaded so that its page never refers to missing files. A folder without a page is refused
// before anything is created.
func TestDeploySendsTheWebApplication(t *testing.T) {
	t.Parallel()
	files := map[string]string{"app/index.html": "a page", "app/assets/a.js": "a script"}
	calls, out := deploy(t, files, "WEB_DIR=app")
	last := -1
	for _, want := range []string{
		"cloudformation deploy ", " WebApp=true ", "/app s3://there --recursive --exclude index.html ", "/app/index.html s3://there/index.html ",
		"/app s3://there --delete ", "lambda invoke ",
	} {
		at := strings.Index(calls, want)
		if at <= last {
			t.Errorf("%q is not in its place:\n%s%s", want, calls, out)
		}
		last = at
	}
	if calls, out := deploy(t, nil, ""); strings.Contains(calls, "s3 sync") || strings.Contains(calls, "WebApp") {
		t.Errorf("without one: %s%s", calls, out)
	}
	for link, want := range map[string]string{"linked": "/real s3://there --delete ", "real/linked.js": "which may lead outside it"} {
		linking := map[string]string{"real/index.html": "a page", "bin/docker": "#!/bin/sh\n[ -L " + link + " ] || ln -s \"$PWD/real\" " + link + "\n[ \"$1\" != login ] || cat >/dev/null\n"}
		calls, out := deploy(t, linking, "WEB_DIR="+strings.TrimSuffix(link, "/linked.js"))
		if !strings.Contains(calls+out, want) || strings.Contains(out, "which may") == strings.Contains(calls, "s3 sync") {
			t.Errorf("%s is a link: want %q: %s%s", link, want, calls, out)
		}
	}
	if calls, out := deploy(t, files, "WEB_DIR=app/assets"); calls != "" || !strings.Contains(out, "WEB_DIR=app/assets has no file index.html") {
		t.Errorf("without a page: %s%s", calls, out)
	}
}

// After a failed first deployment, the next one continues with what exists. A stack that cannot be deployed again, or
// that would fail after half an hour for lack of concurrency, is reported before anything is created.
func TestDeployLooksAtTheStackFirst(t *testing.T) {
	t.Parallel()
	const none = "An error occurred (ValidationError): Stack with id longbox does not exist"
	for _, c := range []struct {
		status, free, parameters string
		option, refusal          string
	}{
		{none, "1000", "", " --disable-rollback ", ""},
		{none, "214", "", " --disable-rollback ", ""},
		{none, "213", "", "", "may run 213 functions at once in eu-west-1, but Longbox needs 214"},
		{none, "233", "Plugins=true", "", "needs 234"},
		{none, "234", "Plugins=true", " --disable-rollback ", ""},
		{none, "224", "Plugins=true\nPluginReserved=10", " --disable-rollback ", ""},
		{none, "10", "Plugins=true\nPlugins=false", "", "needs 214"},
		{"REVIEW_IN_PROGRESS", "1000", "", " --disable-rollback ", ""},
		{"CREATE_FAILED", "0", "", " --disable-rollback ", ""},
		{"UPDATE_FAILED", "0", "", " --disable-rollback ", ""},
		{"UPDATE_COMPLETE", "0", "", " --no-disable-rollback ", ""},
		{"UPDATE_ROLLBACK_COMPLETE", "0", "", " --no-disable-rollback ", ""},
		{"ROLLBACK_FAILED", "1000", "", "", "the stack longbox is ROLLBACK_FAILED and cannot be deployed again: delete it first"},
		{"ROLLBACK_IN_PROGRESS", "1000", "", "", "wait until that has ended"},
		{"Unable to locate credentials", "1000", "", "", "cannot read the state of the stack longbox: Unable to locate credentials"},
	} {
		answer := "echo '" + c.status + "'"
		if strings.Contains(c.status, " ") {
			answer += " >&2; exit 255"
		}
		calls, out := deploy(t, map[string]string{
			"infra/parameters/small": "WorkerReserved=14\nMediaReserved=60\nRenderReserved=40\n", "my.parameters": c.parameters,
			"bin/aws": "#!/bin/sh\necho \"$*\" >>\"$(dirname \"$0\")/../asked\"\ncase \"$*\" in *StackStatus*) " + answer +
				" ;; *get-account-settings*) echo " + c.free + " ;; *\"lambda invoke\"*) echo None; echo 0 >dist/start.json ;; esac\n",
		}, "PARAMETERS=my.parameters")
		if made := strings.Contains(calls, "cloudformation deploy "); made != (c.refusal == "") || !strings.Contains(calls, c.option) {
			t.Errorf("%q, %s free, %q: want %q of\n%s%s", c.status, c.free, c.parameters, c.option, calls, out)
		}
		if !strings.Contains(out, c.refusal) || c.refusal != "" && strings.Contains(calls, "s3 mb") {
			t.Errorf("%q, %s free, %q: want %q: %s", c.status, c.free, c.parameters, c.refusal, out)
		}
	}
}

// deploy runs the script in a folder with these files, with tools that do nothing. It returns the calls of aws and the
// script's output.
func deploy(t *testing.T, files map[string]string, setting string) (calls, said string) {
	t.Helper()
	script, err := os.ReadFile("deploy.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	all := map[string]string{
		"template.yaml": "", "infra/network.yaml": "", "infra/deploy.sh": string(script), "infra/parameters/small": "", "infra/container/golang.digest": "sha256:1\n", "infra/container/node.digest": "sha256:2\n",
		"bin/aws": "#!/bin/sh\necho \"$*\" >>" + asked + "\ncase \"$*\" in *StackStatus*) echo UPDATE_COMPLETE ;; *WebBucket*) echo there ;; *\"lambda invoke\"*) echo None; echo 0 >dist/start.json ;; esac\n",
		"bin/go":  "#!/bin/sh\nfor f in api scheduler migrate operator; do mkdir -p dist/$f && touch dist/$f/bootstrap; done\n", "bin/git": "#!/bin/sh\n", "bin/docker": "#!/bin/sh\n[ \"$1\" != login ] || cat >/dev/null\n",
	}
	maps.Copy(all, files)
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", filepath.Join(dir, "infra/deploy.sh"))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "AWS_REGION=eu-west-1", "SIZE=small", setting)
	out, err := cmd.CombinedOutput()
	if _, refused := errors.AsType[*exec.ExitError](err); err != nil && !refused {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(asked)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(raw), string(out)
}
