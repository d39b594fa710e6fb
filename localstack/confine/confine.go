// Package confine starts a program that the kernel lets read files below a few folders only, and change none at all,
// whatever symbolic links lie in them and whatever the program's user may do: with Landlock
// (https://docs.kernel.org/userspace-api/landlock.html), which Linux has since 5.13.
package confine

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// argument is the first one of this program when it is to run another confined.
const argument = "longbox-confined"

// Whatever program starts others confined must be able to confine them: it is run once more for that.
func init() {
	if len(os.Args) > 1 && os.Args[1] == argument {
		fmt.Fprintln(os.Stderr, become(os.Args[2:]))
		os.Exit(1)
	}
}

const (
	read = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	run  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
)

// handled is what is forbidden wherever no rule allows it: all that a version of Landlock knows of files, by the version.
var handled = []uint64{
	1: unix.LANDLOCK_ACCESS_FS_REFER - 1, // reading, writing, running, making and removing
	2: unix.LANDLOCK_ACCESS_FS_REFER<<1 - 1,
	3: unix.LANDLOCK_ACCESS_FS_TRUNCATE<<1 - 1,
}

// Possible tells why a program cannot be confined, nil where it can be.
func Possible(program string) error {
	if _, err := version(); err != nil {
		return fmt.Errorf("the kernel does not offer Landlock (%w)", err)
	}
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s is not statically linked", program)
	}
	return nil
}

// Command is how this program, self, runs another one that may read below folders, and list the folder it starts in.
func Command(self, program string, folders, args []string) (path string, all []string) {
	all = append([]string{argument, strconv.Itoa(len(folders))}, folders...)
	return self, append(append(all, program), args...)
}

// become becomes the program of a Command, given what follows argument. It returns only with an error. A folder that cannot
// be opened is left out: the program could not read it either.
func become(args []string) error {
	if len(args) == 0 {
		return errors.New("confine: no program")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 || len(args) < n+2 {
		return errors.New("confine: no program")
	}
	folders, command := args[1:1+n], args[1+n:]
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the thread that is restricted must be the one that becomes the program
	if err := restrict(program, folders); err != nil {
		return fmt.Errorf("confine %s: %w", program, err)
	}
	// The limits of a container, from which Go tells how many processors it has, can no longer be read.
	env := append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, command, env))
}

// restrict forbids this thread, for good, and what it becomes, all access to files but what the program needs.
func restrict(program string, folders []string) error {
	v, err := version()
	if err != nil {
		return err
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled[min(v, len(handled)-1)]}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(set))
	if err := errors.Join(allow(set, ".", unix.LANDLOCK_ACCESS_FS_READ_DIR), allow(set, program, run)); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := allow(set, folder, read); err != nil && !errors.Is(err, errClosed) {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

var errClosed = errors.New("cannot be opened")

// allow allows access to a file, or to a folder and what lies below.
func allow(set uintptr, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s %w: %w", path, errClosed, err)
	}
	defer unix.Close(fd)
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("%s: %w", path, errno)
	}
	return nil
}

// version is that of the kernel's Landlock.
func version() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(v), nil
}
