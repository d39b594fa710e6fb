// Package account decides which user the processes of the one-machine system run as.
//
// PostgreSQL refuses to run as root, and nothing else needs root. When started as root, every child runs as the system
// user nobody, or as the owner of DATA_DIR/postgres. When started as another user, children run as that user.
//
// Two things still need root: entering a clone below a closed folder such as /root, and reading any library folder. For
// both, the children that need it get the Linux capability CAP_DAC_READ_SEARCH, which allows reading and entering
// everything but writing nothing.
package account

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Account is the user that children run as.
type Account struct {
	UID, GID int
	// Switch is true when the supervisor is root and must switch to the account for every child.
	Switch bool
	// Closed is a parent folder of our own files that is closed to the account. Every child may then read everything.
	Closed string
}

// errClosed means that the account cannot reach our files and the necessary capability is missing.
var errClosed = errors.New("folder closed to the unprivileged user")

// Choose returns the account for a data folder. Its processes must be able to enter the given folders. It returns
// errClosed when started as root without the capability to enter one of them.
func Choose(dataDir string, enter ...string) (Account, error) {
	if os.Geteuid() != 0 {
		return Account{UID: os.Geteuid(), GID: os.Getegid()}, nil
	}
	a, err := unprivileged(filepath.Join(dataDir, "postgres"))
	if err != nil {
		return Account{}, err
	}
	for _, dir := range append([]string{dataDir}, enter...) {
		closed, err := a.closedFolder(dir)
		if err != nil {
			return Account{}, err
		}
		if closed == "" {
			continue
		}
		if !CanReadAll() {
			return Account{}, fmt.Errorf("%w: user id %d cannot enter %s on the way to %s: move the clone or open that folder with chmod o+x",
				errClosed, a.UID, closed, dir)
		}
		a.Closed = cmp.Or(a.Closed, closed)
	}
	return a, nil
}

// unprivileged returns the owner of an existing folder, otherwise nobody.
func unprivileged(existing string) (Account, error) {
	if uid, gid, err := owner(existing); err == nil && uid != 0 {
		return Account{UID: uid, GID: gid, Switch: true}, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return Account{}, fmt.Errorf("PostgreSQL must run as the user nobody, who does not exist on this machine: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return Account{}, fmt.Errorf("user id of nobody: %w", err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return Account{}, fmt.Errorf("group id of nobody: %w", err)
	}
	return Account{UID: uid, GID: gid, Switch: true}, nil
}

// closedFolder returns the first folder on the path to dir that the account may not enter, or "".
func (a Account) closedFolder(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return "", err
		}
		if !a.mayEnter(info) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", nil
		}
	}
}

func (a Account) mayEnter(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case int(st.Uid) == a.UID:
		return mode&0o100 != 0
	case int(st.Gid) == a.GID:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// File creates a file (mode 0600) for the account in one of its folders. It first removes an existing file: a process
// of the account may have put a link there, and root must neither write to its target nor change the target's owner.
func (a Account) File(path string, content []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if a.Switch {
		err = errors.Join(err, f.Chown(a.UID, a.GID))
	}
	return errors.Join(err, f.Close())
}

// Folder creates a folder (mode 0700) for the account, or checks the owner of an existing one.
func (a Account) Folder(path string) error {
	if err := os.Mkdir(path, 0o700); err == nil {
		if a.Switch {
			err = os.Lchown(path, a.UID, a.GID)
		}
		return err
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	uid, _, err := owner(path)
	if err != nil {
		return err
	}
	if uid != a.UID && a.Switch { // the account is the owner of the database, or nobody if that is root
		return fmt.Errorf("%s belongs to user id %d, not %d: if it was copied without owners and modes, copy it again with cp -a, or choose another DATA_DIR", path, uid, a.UID)
	}
	if uid != a.UID {
		return fmt.Errorf("%s belongs to user id %d, not %d: start as the user who created it, or choose another DATA_DIR", path, uid, a.UID)
	}
	return nil
}

func owner(path string) (uid, gid int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("the owner of %s is unknown", path)
	}
	return int(st.Uid), int(st.Gid), nil
}

// Command prepares a child of the account that works in dir. It has its own session, so that Ctrl-C does not reach it
// and that it gets a CPU share of its own where Linux schedules by session (autogroup), like each Postgres backend.
// With readAll, or when our own files are in a closed folder, it gets the capability to read and enter everything.
func (a Account) Command(readAll bool, dir, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !a.Switch {
		return cmd
	}
	if readAll && !CanReadAll() {
		return cmd // Root without the capability (some containers): a process that only reads stays root.
	}
	credential := &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}
	if readAll || a.Closed != "" {
		// The capability takes effect with the first exec, so a shell after it enters the closed folder.
		cmd = exec.Command("/bin/sh", append([]string{"-c", `cd "$1" && shift && exec "$@"`, "sh", dir, path}, args...)...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, AmbientCaps: []uintptr{unix.CAP_DAC_READ_SEARCH}}
	}
	cmd.SysProcAttr.Credential = credential
	return cmd
}

// CanReadAll reports whether this process has CAP_DAC_READ_SEARCH and may pass it on.
func CanReadAll() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Permitted&(1<<unix.CAP_DAC_READ_SEARCH) != 0
}
