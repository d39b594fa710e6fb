package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"

	"github.com/longbox/longbox/shared/platform/plug"
)

// folders lists the folders of plugins, or removes some.
func (h *Host) folders(ctx context.Context, c *plug.FolderCall) *plug.Answer {
	root, err := os.OpenRoot(h.config.Data)
	if errors.Is(err, fs.ErrNotExist) { // no plugin has run yet
		return &plug.Answer{Folders: []plug.Folder{}}
	}
	if err != nil {
		return orFault(nil, plug.FaultOf(err))
	}
	defer root.Close()
	if len(c.Remove) > 0 {
		return &plug.Answer{Folders: h.remove(ctx, root, c.Remove)}
	}
	all, err := list(root, c.After)
	if err != nil {
		return orFault(nil, plug.FaultOf(err))
	}
	return &plug.Answer{Folders: all}
}

// list returns the folders after one, by name.
func list(root *os.Root, after plug.Folder) ([]plug.Folder, error) {
	out := []plug.Folder{}
	tenants, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		if !tenant.IsDir() || tenant.Name() < after.Tenant {
			continue
		}
		all, err := fs.ReadDir(root.FS(), tenant.Name())
		if err != nil { // a plugin may have made it unreadable: the other tenants' folders are still listed
			slog.Warn("cannot read the plugin folders of a tenant", "tenant", tenant.Name(), "error", err)
			continue
		}
		for _, one := range all {
			if !one.IsDir() || tenant.Name() == after.Tenant && one.Name() <= after.ID {
				continue
			}
			if out = append(out, plug.Folder{Tenant: tenant.Name(), ID: one.Name()}); len(out) == plug.MaxFolders {
				return out, nil
			}
		}
	}
	return out, nil
}

// remove removes folders and returns the removed ones. Folders that are in use or cannot be removed stay for the next
// time.
func (h *Host) remove(ctx context.Context, root *os.Root, all []plug.Folder) []plug.Folder {
	out := []plug.Folder{}
	for _, f := range all {
		if ctx.Err() != nil {
			break
		}
		if f.Tenant == "" || f.ID == "" || folder(f.Tenant) != f.Tenant || folder(f.ID) != f.ID || !h.leave(ctx, plugin{f.Tenant, f.ID}) {
			continue
		}
		if err := removeAll(root, path.Join(f.Tenant, f.ID)); err != nil {
			slog.Warn("cannot remove the folder of a deleted plugin", "tenant", f.Tenant, "id", f.ID, "error", err)
			continue
		}
		out = append(out, f)
	}
	return out
}

// leave ends the idle process of a plugin, and reports whether it has none now.
func (h *Host) leave(ctx context.Context, of plugin) bool {
	h.mu.Lock()
	s := h.slots[of]
	if s == nil {
		h.mu.Unlock()
		return true
	}
	if s.users > 0 || s.process == nil {
		h.mu.Unlock()
		return false
	}
	h.retire(of, s)
	h.mu.Unlock()
	select {
	case <-s.process.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// removeAll removes a folder with its content, even if the plugin has made it read-only. It does not follow links.
func removeAll(root *os.Root, name string) error {
	if err := root.RemoveAll(name); err == nil {
		return nil
	}
	err := fs.WalkDir(root.FS(), name, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = root.Chmod(at, 0o700)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return errors.Join(err, root.RemoveAll(name))
}
