// Package confine starts a program that the kernel lets use files below a few folders only, whatever symbolic links lie
// in them and whatever the program's user may do: with Landlock (https://docs.kernel.org/userspace-api/landlock.html),
// which Linux has since 5.13. What a confined program starts is confined as well, and none of them looks into programs
// outside, nor, where the kernel is of 6.12 or later, signals them. What Landlock does not know stays possible: to
// change the mode, owner or times of files, and to connect to sockets.
package confine

import (
	"debug/elf"
	"encoding/json"
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
	// ofFile is what can be allowed of something that is no folder.
	ofFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	read = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	run  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
)

// handled is what is forbidden wherever no rule allows it: all that a version of Landlock knows of files, by the
// version.
var handled = []uint64{
	1: unix.LANDLOCK_ACCESS_FS_REFER - 1, // reading, writing, running, making and removing
	2: unix.LANDLOCK_ACCESS_FS_REFER<<1 - 1,
	3: unix.LANDLOCK_ACCESS_FS_TRUNCATE<<1 - 1,
}

// Rules are what a confined program may use besides its own file: folders, or single files.
type Rules struct {
	Read  []string `json:"read,omitempty"`
	Run   []string `json:"run,omitempty"`   // read, and run programs of
	Write []string `json:"write,omitempty"` // do everything with
	List  bool     `json:"list,omitempty"`  // list the folder that it starts in, and all below
	// Powerless takes the privileges of root, which reads the memory of all programs, where it may be taken.
	Powerless bool `json:"powerless,omitempty"`
}

// Versions of Landlock: the first, the one with which files can be moved between folders (Linux 5.19), and the one that
// keeps programs from emptying files that they may not write (Linux 6.2).
const (
	first    = 1
	Moving   = 2
	Emptying = 3
)

// Offered tells why nothing can be confined here by a version of Landlock, nil where it can.
func Offered(least int) error {
	v, err := version()
	if err != nil {
		return fmt.Errorf("the kernel does not offer Landlock (%w)", err)
	}
	if v < least {
		return fmt.Errorf("the kernel offers version %d of Landlock, %d is needed", v, least)
	}
	return nil
}

// Possible tells why a program cannot be confined to its own file and what it reads, nil where it can be.
func Possible(program string) error {
	if err := Offered(first); err != nil {
		return err
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

// Command is how this program, self, runs another one by some rules.
func Command(self, program string, r Rules, args []string) (path string, all []string) {
	rules, _ := json.Marshal(r) // of lists of strings: never fails
	return self, append([]string{argument, string(rules), program}, args...)
}

// become becomes the program of a Command, given what follows argument. It returns only with an error. What cannot be
// opened is left out: the program could not use it either.
func become(args []string) error {
	if len(args) < 2 {
		return errors.New("confine: no program")
	}
	var r Rules
	if err := json.Unmarshal([]byte(args[0]), &r); err != nil {
		return fmt.Errorf("confine: rules: %w", err)
	}
	command := args[1:]
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the thread that is restricted must be the one that becomes the program
	if err := restrict(program, r); err != nil {
		return fmt.Errorf("confine %s: %w", program, err)
	}
	// The limits of a container, from which Go tells how many processors it has, can no longer be read.
	env := append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, command, env))
}

// restrict forbids this thread, for good, and what it becomes, all access to files but what the program needs.
func restrict(program string, r Rules) error {
	v, err := version()
	if err != nil {
		return err
	}
	everything := handled[min(v, len(handled)-1)]
	attr := unix.LandlockRulesetAttr{Handled_access_fs: everything}
	size := unsafe.Offsetof(attr.Handled_access_net) // older kernels know no more of it
	if v >= 6 {
		attr.Scoped, size = unix.LANDLOCK_SCOPE_SIGNAL|unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, unsafe.Offsetof(attr.Quiet_access_fs)
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(set))
	err = allow(set, program, run)
	if r.List {
		err = errors.Join(err, allow(set, ".", unix.LANDLOCK_ACCESS_FS_READ_DIR))
	}
	if err != nil {
		return err
	}
	for access, paths := range map[uint64][]string{read: r.Read, read | run: r.Run, everything: r.Write} {
		for _, path := range paths {
			if err := allow(set, path, access); err != nil && !errors.Is(err, errClosed) {
				return err
			}
		}
	}
	if r.Powerless {
		for c := range uintptr(64) {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // whoever may not has none
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
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return fmt.Errorf("%s %w: %w", path, errClosed, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFile
	}
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
