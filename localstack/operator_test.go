package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The operator gets the addresses and credentials of the running system, and none of the shell for others, as with make
// run. The driver of the database would use PG… for all that an address leaves open.
func TestOperatorKeepsToItsSystem(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	newClone(t, dir, map[string]string{"Makefile": string(makefile), ".bin/operator": "#!/bin/sh\necho \"$@\"\nenv\n",
		"data/operator.env": "DATABASE_SYSTEM_URL='postgres:///longbox?host=/run'\nAWS_ACCESS_KEY_ID='own'\n"})
	for _, shell := range [][]string{nil, {"PGHOST=elsewhere", "PGOPTIONS=-c default_transaction_read_only=on",
		"AWS_SESSION_TOKEN=of-a-real-cloud", "AWS_ACCESS_KEY_ID=theirs"}} {
		cmd := exec.Command("make", "--no-print-directory", "-C", dir, "operator", "ARGS=list --all")
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "DATA_DIR=" + filepath.Join(dir, "data"), "EVENT_PAUSE=1s"}, shell...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		said := "\n" + string(out)
		for _, want := range []string{"\nlist --all\n", "\nAWS_ACCESS_KEY_ID=own\n", "\nDATABASE_SYSTEM_URL=postgres:///longbox?host=/run\n", "\nEVENT_PAUSE=1s\n"} {
			if !strings.Contains(said, want) {
				t.Errorf("with %q, the operator lacks %s: %s", shell, want, said)
			}
		}
		if strings.Contains(said, "\nPG") || strings.Contains(said, "\nAWS_SESSION_TOKEN") {
			t.Errorf("with %q, the operator gets %s", shell, said)
		}
	}
}
