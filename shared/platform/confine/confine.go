// Package confine starts a program with file access limited to a few folders, with Landlock
// (https://docs.kernel.org/userspace-api/landlock.html; Linux 5.13 or later). Symbolic links in the folders and the
// rights of the program's user do not widen the access. Child processes are confined as well. Confined processes cannot
// inspect other processes and, with Linux 6.12 or later, cannot signal them. Landlock does not restrict everything:
// changing the mode, owner or times of files and connecting to sockets stay possible.
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

// argument is the first argument of this program when it starts another one confined.
const argument = "longbox-confined"

// A program that starts confined programs runs itself once more to confine them.
func init() {
	if len(os.Args) > 1 && os.Args[1] == argument {
		fmt.Fprintln(os.Stderr, become(os.Args[2:]))
		os.Exit(1)
	}
}

const (
	// ofFile are the rights that apply to files.
	ofFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	read = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	run  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
)

// handled are the rights that are denied without a rule, by version of Landlock: all that the version knows about
// files.
var handled = []uint64{
	1: unix.LANDLOCK_ACCESS_FS_REFER - 1, // reading, writing, executing, creating and removing
	2: unix.LANDLOCK_ACCESS_FS_REFER<<1 - 1,
	3: unix.LANDLOCK_ACCESS_FS_TRUNCATE<<1 - 1,
}

// Rules are the folders and files that a confined program may use besides its own file.
type Rules struct {
	Read  []string `json:"read,omitempty"`
	Run   []string `json:"run,omitempty"`   // read, and execute programs
	Write []string `json:"write,omitempty"` // all rights
	List  bool     `json:"list,omitempty"`  // list the working folder and everything below
	// Powerless drops the privileges of root if possible. Root can read the memory of all processes.
	Powerless bool `json:"powerless,omitempty"`
}

// Versions of Landlock: the first one, the one that allows moving files between folders (Linux 5.19), and the one that
// can forbid truncating files (Linux 6.2).
const (
	first    = 1
	Moving   = 2
	Emptying = 3
)

// Offered returns nil if the kernel has at least this version of Landlock, else an error.
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

// Possible returns nil if a program can be confined to its own file and the files that it reads, else an error.
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

// Command returns the command line with which this program, self, runs another one under these rules.
func Command(self, program string, r Rules, args []string) (path string, all []string) {
	rules, _ := json.Marshal(r) // lists of strings always encode
	return self, append([]string{argument, string(rules), program}, args...)
}

// become replaces this process with the program of a Command; args follow argument. It returns only with an error.
// Rules for paths that cannot be opened are skipped: the program could not use them either.
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
	runtime.LockOSThread() // the restricted thread must be the one that executes the program
	if err := restrict(program, r); err != nil {
		return fmt.Errorf("confine %s: %w", program, err)
	}
	// Go reads the CPU limit of a container from files that are no longer accessible.
	env := append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, command, env))
}

// restrict permanently denies this thread, and the program that it executes, all file access that the program does not
// need.
func restrict(program string, r Rules) error {
	v, err := version()
	if err != nil {
		return err
	}
	everything := handled[min(v, len(handled)-1)]
	attr := unix.LandlockRulesetAttr{Handled_access_fs: everything}
	size := unsafe.Offsetof(attr.Handled_access_net) // older kernels know only this part
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
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // without the right to drop it, there is none to drop
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

// allow grants access to a file, or to a folder and everything below.
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

// version returns the version of the kernel's Landlock.
func version() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(v), nil
}
