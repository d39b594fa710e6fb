package db

import (
	"fmt"
	"strconv"
	"strings"
)

// KeepsPlansApart tells whether a server of this version ("15.9 (Debian 15.9-1)") makes a kept plan anew where another
// role runs it. Those before 15.9, 16.5 and 17.1 do not wherever a table stands in a subquery (CVE-2024-10976): one
// user would be shown what is hidden from them, since it is shown to who ran the statement first.
func KeepsPlansApart(version string) bool {
	version, _, _ = strings.Cut(version, " ")
	first, second, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return true // one to come, "19beta1"
	}
	minor, _ := strconv.Atoi(second) // none is 0
	fixed, known := map[int]int{15: 9, 16: 5, 17: 1}[major]
	return !known || minor >= fixed
}

func checkPlans(version string) error {
	if KeepsPlansApart(version) {
		return nil
	}
	return fmt.Errorf("DATABASE_PREPARE: PostgreSQL %s mixes up the plans of roles (CVE-2024-10976), which would show users what is hidden from them: update it, or leave DATABASE_PREPARE off", version)
}
