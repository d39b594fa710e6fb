package db

import (
	"fmt"
	"strconv"
	"strings"
)

// KeepsPlansApart reports whether a server of this version ("15.9 (Debian 15.9-1)") replans a cached plan when another
// role runs it. Versions before 15.9, 16.5 and 17.1 do not if a table is in a subquery (CVE-2024-10976). One user could
// then see rows that only the first user of the statement may see.
func KeepsPlansApart(version string) bool {
	version, _, _ = strings.Cut(version, " ")
	first, second, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return true // a future version, such as "19beta1"
	}
	minor, _ := strconv.Atoi(second) // a missing one is 0
	fixed, known := map[int]int{15: 9, 16: 5, 17: 1}[major]
	return !known || minor >= fixed
}

func checkPlans(version string) error {
	if KeepsPlansApart(version) {
		return nil
	}
	return fmt.Errorf("DATABASE_PREPARE: PostgreSQL %s mixes up the plans of roles (CVE-2024-10976), which could show users what is hidden from them: update PostgreSQL, or leave DATABASE_PREPARE off", version)
}
