package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oldest is the oldest supported major version of PostgreSQL.
const oldest = 15

// programFolders matches the server programs of Debian and Ubuntu, one folder per major version.
const programFolders = "/usr/lib/postgresql/*/bin"

// programs returns the folder of the server programs among those that match pattern. It chooses the version of the
// cluster in dir, or the newest one without a cluster.
func programs(pattern, dir string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	made, err := clusterVersion(dir)
	if err != nil {
		return "", err
	}
	best, bestVersion := "", 0
	for _, bin := range found {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		if err != nil {
			continue // A version before 10, such as 9.6.
		}
		if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
			continue // Removed, but its folder remains.
		}
		if version == made {
			return bin, nil
		}
		if version > bestVersion {
			best, bestVersion = bin, version
		}
	}
	switch {
	case made != 0:
		return "", fmt.Errorf("the database in %s was made by PostgreSQL %d, which is not installed: "+
			"apt-get install postgresql-%d (apt.postgresql.org has it if the system does not)", dir, made, made)
	case bestVersion > 0 && bestVersion < oldest:
		return "", fmt.Errorf("PostgreSQL %d is too old: Longbox needs %d or newer, which Debian 12 and Ubuntu 24.04 have", bestVersion, oldest)
	case bestVersion == 0:
		return "", fmt.Errorf("no PostgreSQL %d or newer found in /usr/lib/postgresql: apt-get install postgresql", oldest)
	}
	return best, nil
}

// clusterVersion reads the major version of an existing cluster, or 0 without one.
func clusterVersion(dir string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("database: %w", err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, fmt.Errorf("database: %s/PG_VERSION: %w", dir, err)
	}
	return version, nil
}
