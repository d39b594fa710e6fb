package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/longbox/longbox/localstack/build"
)

const idleFor = 10 * time.Second

// idle reports the memory of every process of make run with its sample library, 10 s after it is ready.
func idle(ctx context.Context, s *system, out *report) (err error) {
	for _, p := range append(build.Programs, source("localstack")) {
		if err := s.build(ctx, p.Name); err != nil {
			return err
		}
	}
	data := filepath.Join(s.dir, "idle")
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, "localstack"))
	cmd.Env = append(os.Environ(), "PORT=0", "DATA_DIR="+data, "LIBRARY=", "LONGBOX_ADMIN="+adminName+":"+adminPassword,
		"LONGBOX_PROGRAMS="+s.programs, "LONGBOX_TOOLS="+filepath.Join(s.root, ".tools", "bin"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // It may have ended already.
		if e := cmd.Wait(); err == nil {
			err = e
		}
	}()
	ready := make(chan bool, 1)
	go func() {
		for l := bufio.NewScanner(lines); l.Scan(); {
			if strings.HasPrefix(l.Text(), "Longbox is ready") {
				ready <- true
			}
		}
		close(ready)
	}()
	if !<-ready {
		return fmt.Errorf("make run ended before it was ready")
	}
	out.info("make run on a new DATA_DIR, ready after", time.Since(began).Seconds(), "s")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleFor):
	}
	return idleMemory(out, cmd.Process.Pid, data)
}

func idleMemory(out *report, supervisor int, data string) error {
	pids, err := processes(data)
	if err != nil {
		return err
	}
	pids["localstack"] = supervisor
	total := 0.0
	for _, name := range slices.Sorted(maps.Keys(pids)) {
		family := []int{pids[name]}
		if name == "postgres" {
			family = append(family, children(pids[name])...)
		}
		resident, shared := 0.0, 0.0
		for _, pid := range family {
			rss, err := memory(pid, "VmRSS")
			if err != nil {
				return err
			}
			shm, err := memory(pid, "RssShmem")
			if err != nil {
				return err
			}
			resident += rss - shm
			shared = max(shared, shm) // All server processes map the same buffers: count them once.
		}
		out.info(fmt.Sprintf("memory of %s (%d)", name, len(family)), resident+shared, "MB")
		total += resident + shared
	}
	out.info("memory of all", total, "MB")
	return nil
}
