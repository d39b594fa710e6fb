// Package bound starts servers that do not outlive the test program.
package bound

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Start starts a server that ends, by the signal ("INT", "KILL"), and whose folder goes, when stop is called or this
// program ends, however it ends: a shell in between waits for the program's end of a pipe. What the server says is in
// the file "log" of the folder.
func Start(cmd *exec.Cmd, signal, folder string) (stop func(), err error) {
	if cmd.Err != nil { // there is no such program
		return nil, cmd.Err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	script := `"$@" & pid=$!; read -r _; kill -$SIGNAL $pid 2>/dev/null; wait $pid; rm -rf "$FOLDER"`
	shell := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, cmd.Args...)...)
	shell.Env = append(os.Environ(), "SIGNAL="+signal, "FOLDER="+folder)
	shell.SysProcAttr = cmd.SysProcAttr
	if shell.SysProcAttr == nil { // an interrupt from the terminal is for this program
		shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	shell.Stdin = r
	shell.Dir = folder
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	shell.Stdout, shell.Stderr = log, log
	if err := shell.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Args[0], err)
	}
	keepOpen.Store(w, true)
	return sync.OnceFunc(func() {
		keepOpen.Delete(w)
		w.Close()
		_ = shell.Wait() // it ends as the server did
	}), r.Close()
}

var keepOpen sync.Map // the write ends of the pipes above; closed by the end of the program

// Child ends this program when the one that started it with [Parent] has ended.
func Child() {
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // nothing ever comes
		os.Exit(1)
	}()
}

// Parent has a command's program, which calls [Child], end with this one at the latest.
func Parent(cmd *exec.Cmd) error {
	_, err := cmd.StdinPipe() // is closed by Wait
	return err
}
