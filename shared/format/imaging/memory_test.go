package imaging

import (
	"bufio"
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

const childVariable = "IMAGING_MEMORY_CHILD"

// TestMemoryStaysFlat renders many pages in a separate process and reads its memory from the kernel. One 1200 px WebP
// at a time takes at most 64 MB above the start. After many mixed renders, four at once, no more is held than after
// some.
func TestMemoryStaysFlat(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		memoryChild(t)
		return
	}
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryStaysFlat$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func memoryChild(t *testing.T) {
	r := New(Config{})
	render := func(spec Spec) {
		if _, err := r.Render(context.Background(), pageJPEG(), spec); err != nil {
			t.Error(err)
		}
	}
	render(Spec{Width: 8, Format: PNG})
	base := memory(t, "VmHWM")
	for range 10 {
		render(Spec{Width: 1200, Format: WebP})
	}
	single := memory(t, "VmHWM")
	mixed := func(n int) {
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for i := range n {
					render(Spec{Width: 150 << ((i + worker) % 4), Format: []string{JPEG, WebP, JPEG}[i%3]})
				}
			})
		}
		wg.Wait()
	}
	mixed(30)
	debug.FreeOSMemory() // what Go has yet to give back is not what libvips holds
	some, someHigh := memory(t, "VmRSS"), memory(t, "VmHWM")
	mixed(30)
	debug.FreeOSMemory()
	many, manyHigh := memory(t, "VmRSS"), memory(t, "VmHWM")
	fmt.Printf("MB: base %d, peak of one worker %d, of four %d then %d, held after some %d, after many %d\n",
		base>>10, single>>10, someHigh>>10, manyHigh>>10, some>>10, many>>10)
	if single > base+64<<10 {
		t.Errorf("one worker took %d MB above its start", (single-base)>>10)
	}
	if float64(manyHigh) > 1.2*float64(someHigh) || many > someHigh {
		t.Errorf("memory grows with the number of renders")
	}
}

// TestOutputIsCharged renders noise in separate processes, one per case. A render takes at most what it is charged.
func TestOutputIsCharged(t *testing.T) {
	if of := os.Getenv(childVariable); of != "" {
		outputChild(t, of)
		return
	}
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	img := image.NewRGBA(image.Rect(0, 0, 3000, 4000))
	_, _ = rand.NewChaCha8([32]byte{}).Read(img.Pix) // never fails
	file := filepath.Join(t.TempDir(), "noise.jpg")
	if err := os.WriteFile(file, jpegOf(t, img), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"png 0", "jpeg 80", "jpeg 100", "webp 80"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOutputIsCharged$")
		cmd.Env = append(os.Environ(), childVariable+"="+file+" "+c)
		out, err := cmd.CombinedOutput()
		t.Logf("as %s: %s", c, out)
		if err != nil {
			t.Errorf("as %s: %v", c, err)
		}
	}
}

func outputChild(t *testing.T, of string) {
	var file string
	var spec Spec
	if _, err := fmt.Sscan(of, &file, &spec.Format, &spec.Quality); err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := New(Config{})
	if _, err := r.Render(context.Background(), jpegOf(t, image.NewGray(image.Rect(0, 0, 8, 8))), spec); err != nil { // starts libvips
		t.Fatal(err)
	}
	h, err := r.inspect(src)
	if err != nil {
		t.Fatal(err)
	}
	base := memory(t, "VmRSS")
	res, err := r.Render(context.Background(), src, spec)
	if err != nil {
		t.Fatal(err)
	}
	took, charged := memory(t, "VmHWM")-base, r.workingSet(h, 0, res.Width, res.Height, spec)>>10
	fmt.Printf("%d MB out, took %d MB, charged %d MB\n", len(res.Bytes)>>20, took>>10, charged>>10)
	if slack := int64(8 << 10); int64(took) > charged+slack { // of Go's heap
		t.Error("it took more than it was charged")
	}
}

// memory returns a field of /proc/self/status in kB.
func memory(t *testing.T, field string) int {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip("needs /proc")
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), field+":"); ok {
			var kb int
			if _, err := fmt.Sscanf(rest, "%d kB", &kb); err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Fatalf("no %s", field)
	return 0
}
