package host_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/plug/host"
)

func folders(t *testing.T, h *host.Host, c plug.FolderCall) []plug.Folder {
	t.Helper()
	a := h.Do(t.Context(), plug.Call{Folders: &c})
	if a.Fault != nil || a.Folders == nil {
		t.Fatalf("%+v", a)
	}
	return a.Folders
}

// Folders of plugins are listed and removed with their content, except one in use, and nothing elsewhere.
func TestFolders(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "plugins")
	h, start := newHost(t, func(c *host.Config) { c.Data = dir })
	if got := folders(t, h, plug.FolderCall{}); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if _, fault := ask(h, start(), "ping", nil); fault != nil {
		t.Fatal(fault)
	}
	outside := filepath.Join(filepath.Dir(dir), "outside")
	deep := filepath.Join(dir, "two", "2", "a", "b")
	for _, d := range []string{outside, deep, filepath.Join(dir, "two", "3")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(outside, "kept")
	for _, f := range []string{kept, filepath.Join(deep, "file"), filepath.Join(dir, "file")} {
		if err := os.WriteFile(f, nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{filepath.Join(deep, "link"), filepath.Join(dir, "elsewhere")} {
		if err := os.Symlink(outside, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{deep, filepath.Dir(deep)} { // who may not write into them removes nothing
		if err := os.Chmod(d, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	all := []plug.Folder{{Tenant: "one", ID: "1"}, {Tenant: "two", ID: "2"}, {Tenant: "two", ID: "3"}}
	if got := folders(t, h, plug.FolderCall{}); !reflect.DeepEqual(got, all) {
		t.Errorf("%v", got)
	}
	if got := folders(t, h, plug.FolderCall{After: all[1]}); !reflect.DeepEqual(got, all[2:]) {
		t.Errorf("%v", got)
	}
	wrong := []plug.Folder{{Tenant: "..", ID: "outside"}, {Tenant: "elsewhere", ID: "kept"}, {Tenant: "two", ID: ""}, {Tenant: "two", ID: "../one"}, {}}
	if got := folders(t, h, plug.FolderCall{Remove: wrong}); len(got) != 0 {
		t.Errorf("removed %v", got)
	}
	if got := folders(t, h, plug.FolderCall{Remove: all[:2]}); !reflect.DeepEqual(got, all[:2]) {
		t.Errorf("removed %v", got)
	}
	if got := folders(t, h, plug.FolderCall{}); !reflect.DeepEqual(got, all[2:]) {
		t.Errorf("left %v", got)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error("what a link leads to was removed", err)
	}
	// A plugin starts again in a folder of its own.
	if got, fault := ask(h, start(), "test/count", nil); fault != nil || got != "2" {
		t.Error(got, fault)
	}
}
