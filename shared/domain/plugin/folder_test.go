package plugin_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/plugin"
)

// A plugin's folder is deleted with the plugin, or when its user disables it or is deleted; others stay.
func TestFoldersOfPlugins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	system, _ := r.add(admin, nil)
	gone, _ := r.add(admin, object{"name": "gone"})
	id := r.personal(admin, nil, "token")
	var of []string
	for range 3 {
		c := r.User(t, "one", "reader")
		of = append(of, c.Do("POST", user+"/"+id+"/enable", nil).Want(200).Map()["id"].(string))
		c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "x"}).Want(200) // sends a request to the plugin
		switch len(of) {
		case 1:
			c.Do("DELETE", user+"/"+id, nil).Want(204)
		case 2:
			r.DB.Exec(t, "delete from account where id = $1", c.ID)
		}
	}
	admin.Do("DELETE", base+"/admin/plugins/"+gone, nil).Want(204)
	// Folders of unknown owners.
	others := []string{filepath.Join(uuid.NewString(), uuid.NewString()), filepath.Join(r.Two.String(), "files"), "files"}
	for _, name := range others {
		if err := os.MkdirAll(filepath.Join(r.data, name, "more"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(r.data, name))
		return err == nil
	}
	own := func(id string) string { return filepath.Join(r.One.String(), id) }
	all := append([]string{own(system), own(gone), own(of[0]), own(of[1]), own(of[2])}, others...)
	for _, name := range all {
		if !there(name) {
			t.Fatalf("%s is not there", name)
		}
	}
	if n, err := plugin.SweepFolders(t.Context(), r.DB.System, r.runner.Client); n != 3 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	for _, name := range all {
		if want := !slices.Contains([]string{own(gone), own(of[0]), own(of[1])}, name); there(name) != want {
			t.Errorf("%s: %t, want %t", name, !want, want)
		}
	}
	if n, err := plugin.SweepFolders(t.Context(), r.DB.System, r.runner.Client); n != 0 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
}
