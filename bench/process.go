package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes returns the ids of the running children, from the ledger in a supervisor's data folder.
func processes(data string) (map[string]int, error) {
	raw, err := os.ReadFile(filepath.Join(data, "processes.json"))
	if err != nil {
		return nil, err
	}
	var entries map[string]struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("processes.json: %w", err)
	}
	pids := map[string]int{}
	for name, e := range entries {
		pids[name] = e.PID
	}
	return pids, nil
}

// memory reads a line of /proc/<pid>/status (VmHWM: peak resident, VmRSS: resident) in MB.
func memory(pid int, line string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(raw)) {
		fields := strings.Fields(l)
		if len(fields) == 3 && fields[0] == line+":" {
			kb, err := strconv.ParseFloat(fields[1], 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, line)
}

// cpu returns the CPU time of a process and of its ended children, in milliseconds.
func cpu(pid int) (ms float64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 15 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	for _, field := range fields[11:15] { // user, system, and the same of children; in hundredths of a second
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, err
		}
		ms += v * 10
	}
	return ms, nil
}

// familyCPU is cpu with the running children.
func familyCPU(pid int) (float64, error) {
	ms, err := cpu(pid)
	for _, child := range children(pid) {
		if v, err := cpu(child); err == nil { // it may have just ended; it is then counted as an ended child
			ms += v
		}
	}
	return ms, err
}

// children returns the child processes of a process.
func children(pid int) (all []int) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil // The pattern is valid.
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue // The thread has ended.
		}
		for _, field := range strings.Fields(string(raw)) {
			if n, err := strconv.Atoi(field); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// machine returns the name of the CPU.
func machine() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for l := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(l, "model name"); ok {
			return strings.Trim(name, " \t\n:")
		}
	}
	return "unknown"
}
