package infra_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var copied = regexp.MustCompile(`(?m)^COPY ([^-\s]\S*) \S+$`)

// A container file copies every package of its programs, pins its base image by digest, and cross-compiles for the
// target processor on the machine's own one. Its last image runs as nobody, without a shell and without commands at
// build time, except for plugins, which use the Node.js image.
func TestContainerFiles(t *testing.T) {
	t.Parallel()
	g := reach(t)
	for file, folders := range map[string][]string{
		"../infra/container/Dockerfile":        {"functions/media", "functions/worker"},
		"../infra/container/plugin.Dockerfile": {"functions/plugin"},
		"../sse-relay/Dockerfile":              {"sse-relay"},
	} {
		last := "scratch\n"
		if folders[0] == "functions/plugin" {
			last = "node:24-bookworm@${NODE_DIGEST}\n" // plugins need its programs
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		var sources []string
		for _, m := range copied.FindAllStringSubmatch(text, -1) {
			sources = append(sources, m[1])
		}
		for _, folder := range folders {
			if len(g.linked[folder]) == 0 {
				t.Fatalf("no packages of %s found", folder)
			}
			for _, p := range g.linked[folder] {
				path, found := strings.TrimPrefix(p, module+"/"), false
				for _, s := range sources {
					found = found || path == s || strings.HasPrefix(path, s+"/")
				}
				if !found {
					t.Errorf("%s builds %s, which needs %s: COPY it", file, folder, path)
				}
			}
		}
		stages := strings.Split(text, "\nFROM ")
		if len(stages) < 3 || !strings.Contains(stages[1], "@${GO_DIGEST}") || !strings.HasPrefix(stages[len(stages)-1], last) ||
			!strings.Contains(stages[len(stages)-1], "\nUSER 65532:65532\n") || strings.Contains(stages[len(stages)-1], "\nRUN ") {
			t.Errorf("%s: the base must be fixed by GO_DIGEST, the last stage be %q with USER 65532:65532 and without RUN", file, last)
		}
		if !strings.HasPrefix(stages[1], "--platform=$BUILDPLATFORM ") || !strings.Contains(stages[1], " GOARCH=$TARGETARCH ") {
			t.Errorf("%s builds under an emulator where the image is for another processor: the base must be of $BUILDPLATFORM, go build be given GOARCH=$TARGETARCH", file)
		}
	}
}

// The decoders include the distribution's security updates: they are built from the sources of every suite that
// packages come from, with their patches, which only unpacking by apt-get applies. Encoders that Longbox does not use
// are left out.
func TestDecodersHaveSecurityUpdates(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("container/vips.sh")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, want := range []string{"$(RELEASE)", " source libheif vips\n", "-DWITH_X265=OFF"} {
		if !strings.Contains(text, want) {
			t.Errorf("vips.sh lacks %q", want)
		}
	}
	if strings.Contains(text, "--download-only") || strings.Contains(text, ".orig.tar") {
		t.Error("vips.sh unpacks sources itself, without their patches")
	}
}

// The images decode all formats of the renderer, as on one machine with the distribution's libvips.
func TestDecodersOfEveryFormat(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("container/vips.sh")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("container/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for option, library := range map[string]string{
		"-Djpeg=enabled": "libjpeg62-turbo-dev", "-Dpng=enabled": "libpng-dev", "-Dwebp=enabled": "libwebp-dev",
		"-Dtiff=enabled": "libtiff-dev", "-Dheif=enabled": "libde265-dev", "-DWITH_DAV1D=ON": "libdav1d-dev",
		"-Dlcms=enabled": "liblcms2-dev", "-Dexif=enabled": "libexif-dev", "-Dnsgif=true": "",
	} {
		if !strings.Contains(string(script), option) {
			t.Errorf("vips.sh lacks %s", option)
		}
		if !strings.Contains(string(file), " "+library) {
			t.Errorf("the Dockerfile lacks %s, for %s", library, option)
		}
	}
}

// closure.sh reads nothing that one image has and the base of another does not: only its arguments and certificates.
// The font of PDFs comes from the file of the image that draws them.
func TestClosureWorksOnEveryBase(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("container/closure.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range regexp.MustCompile(`(?m)[ "](/(?:etc|usr|opt|lib)/\S+)`).FindAllStringSubmatch(string(script), -1) {
		if path[1] != "/etc/ssl/certs/ca-certificates.crt" {
			t.Errorf("closure.sh reads %s, which not every image has that runs it", path[1])
		}
	}
	file, err := os.ReadFile("container/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	const font = "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf /image/usr/share/fonts/"
	if text := string(file); !strings.Contains(text, " fonts-droid-fallback ") || !strings.Contains(text, font) {
		t.Error("the image of media and worker has no font for PDFs that bring none")
	}
}

// closure.sh finds the same libraries as ldd without running the program, and reports missing ones.
func TestClosure(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("ls")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", program, err)
	}
	var want, folders []string
	for _, line := range strings.Split(string(out), "\n") {
		for _, word := range strings.Fields(line) {
			if filepath.IsAbs(word) {
				want = append(want, word)
				if folder := filepath.Dir(word); !slices.Contains(folders, folder) {
					folders = append(folders, folder)
				}
			}
		}
	}
	root := t.TempDir()
	if out, err := exec.Command("container/closure.sh", append([]string{program, root}, folders...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, path := range append(want, "/bootstrap", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt") {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
	}
	libraries, err := filepath.Glob(filepath.Join(root, "*", "*", "*.so*"))
	if err != nil || len(libraries) > len(want) {
		t.Errorf("more than ldd names: %q, %v", libraries, err)
	}
	if out, err := exec.Command("container/closure.sh", program, t.TempDir(), "/nowhere").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), program+" needs lib") || !strings.Contains(string(out), "/nowhere") {
		t.Errorf("libraries that are nowhere: %v: %s", err, out)
	}
}
