package testkit

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/longbox/longbox/localstack/port"
	"github.com/longbox/longbox/shared/testkit/bound"
)

// freePort returns a free loopback TCP port outside Linux's range for outgoing connections.
func freePort() (int, error) {
	ports, err := port.Free(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// unprivileged returns the user for servers when the tests run as root, which PostgreSQL refuses.
func unprivileged() (uid, gid uint32, ok bool) {
	if os.Getuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		id, err1 := strconv.ParseUint(u.Uid, 10, 32)
		group, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return uint32(id), uint32(group), true
		}
	}
	return 0, 0, false
}

func giveAway(dir string) error {
	if uid, gid, ok := unprivileged(); ok {
		return os.Chown(dir, int(uid), int(gid))
	}
	return nil
}

func asUser(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid, gid, ok := unprivileged(); ok {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return cmd
}

// startBound starts a server that ends, and whose folder goes, when this test program ends, however it ends.
func startBound(cmd *exec.Cmd, dir string) error {
	_, err := bound.Start(cmd, "INT", dir)
	return err
}

func waitFor(limit time.Duration, try func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("not ready in "+limit.String()), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Eventually waits until the condition holds. It fails the test if it does not within the limit.
func Eventually(t testing.TB, limit time.Duration, condition func() bool) {
	t.Helper()
	if err := waitFor(limit, func() error {
		if condition() {
			return nil
		}
		return errors.New("the condition does not hold")
	}); err != nil {
		t.Fatal(err)
	}
}
