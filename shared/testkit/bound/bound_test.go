package bound_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit/bound"
)

// TestMain is the test program, or one that starts a server and a child, or the child.
func TestMain(m *testing.M) {
	switch os.Getenv("BOUND_TEST") {
	case "parent":
		_, err := bound.Start(exec.Command("sleep", "60"), "KILL", os.Getenv("BOUND_TEST_FOLDER"))
		child := exec.Command(os.Args[0])
		child.Env, child.Stdout = append(os.Environ(), "BOUND_TEST=child"), os.Stdout
		if err := errors.Join(err, bound.Parent(child), child.Start()); err != nil {
			panic(err)
		}
		time.Sleep(time.Minute) // it is killed before
	case "child":
		bound.Child()
		fmt.Print("!")
		time.Sleep(time.Minute) // its parent ends before
	default:
		os.Exit(m.Run())
	}
}

// Neither a server nor a child of a program that is killed is left behind.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "of the server")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "BOUND_TEST=parent", "BOUND_TEST_FOLDER="+folder)
	out, err := parent.StdoutPipe()
	if err := errors.Join(err, parent.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	end := time.AfterFunc(20*time.Second, func() { out.Close() })
	if _, err := io.ReadAll(out); err != nil || !end.Stop() { // ends when nobody can write any more
		t.Errorf("the child is left: %v", err)
	}
	_ = parent.Wait() // killed: that is its end
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) { // it goes after the server
			return
		}
		if time.Now().After(until) {
			t.Fatal("the server is left")
		}
	}
}
