package naming

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// least is how many names the table must have, so that none gets lost.
const least = 2200

// The table of names is the specification of Detect.
func TestDetectTable(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	total, right := 0, 0
	seen := map[string]bool{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "|")
		for len(cells) < 8 {
			cells = append(cells, "")
		}
		if len(cells) != 8 {
			t.Fatalf("line %d has %d fields", n, len(cells))
		}
		name := strings.TrimSuffix(cells[0], " ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if seen[name] {
			t.Errorf("line %d: %q is there twice", n, name)
		}
		seen[name] = true
		total++
		if got, want := show(Detect(name)), strings.Join(cells[1:], " | "); got != want {
			t.Errorf("line %d: %s\n  got  %s\n  want %s", n, name, got, want)
			continue
		}
		right++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d names are right", right, total)
	if total < least {
		t.Errorf("the table has %d names, it had at least %d", total, least)
	}
}

// show writes what was detected as the table does.
func show(n Name) string {
	whole := func(v, to *int) string {
		if v == nil {
			return ""
		}
		if to != nil {
			return fmt.Sprintf("%d-%d", *v, *to)
		}
		return strconv.Itoa(*v)
	}
	number := func(v, to *float64) string {
		if v == nil {
			return ""
		}
		s := strconv.FormatFloat(*v, 'f', -1, 64)
		if to != nil {
			s += "-" + strconv.FormatFloat(*to, 'f', -1, 64)
		}
		return s
	}
	var others []string
	if n.Count != nil {
		others = append(others, fmt.Sprintf("of=%d", *n.Count))
	}
	if n.Kind != "" {
		others = append(others, "kind="+n.Kind)
	}
	if n.Revision > 0 {
		others = append(others, fmt.Sprintf("rev=%d", n.Revision))
	}
	if n.Group != "" {
		others = append(others, "group="+n.Group)
	}
	return strings.Join([]string{n.Series, whole(n.Volume, n.VolumeTo), number(n.Chapter, n.ChapterTo), number(n.Number, n.NumberTo),
		whole(n.Year, nil), n.Title, strings.Join(others, " ")}, " | ")
}

// For any name, a hundred times its length takes proportionally longer at most.
func TestDetectIsBounded(t *testing.T) {
	best := func(name string) time.Duration {
		least := time.Hour
		for range 3 {
			start := time.Now()
			Detect(name)
			least = min(least, time.Since(start))
		}
		return least
	}
	for _, part := range []string{"v1 ", "c1v", "((((", "[1]", "1-", "第1", "一", "#", "½", "t1-", " - 1", ".1", "0a", "全1巻", "2014-05-21 ", " 1 to 2", "上", "(c1)", "1 (c1)", "v1x2 ", "(X, #2)", " - [X 3] - ", "001 - ", "4 March 2023 ", "2021-05 ", "том no. ", "12-1975 ", "2023年3月1日", "Ⅲ", "第二季", "½ 一卷", "Tome III ", "vol X", "A.C. 1 ", "第2章第3話", "No. 8 012 ", "012 v2 ", " - 012  v3 ", "1,001 ", "the 3 aa ", " - 1 - Part 2 ", "009 12 ", "a(s)", "18.2021 ", "(X Book 3)", "т1гл5"} {
		short, long := best(strings.Repeat(part, maxName)), best(strings.Repeat(part, 100*maxName))
		if long > 5*short+100*time.Millisecond {
			t.Errorf("%q: %v, a hundred times as much of it %v", part, short, long)
		}
	}
}

func FuzzDetect(f *testing.F) {
	for _, s := range []string{"[Group] Title v01-03 c012v2 (of 6) (2012).cbz", "鳥の眼 第十二巻 第３.5話「夜」.zip", "Batman #-1 ½", "Title - - 012", "t.1-t2 том 3 глава 5 ((", "第\xff1話", "2014年25号 全3巻 上巻", "No. 8 012 - 20 x 1920x1080", "c012x1 v3n12 (v1 c2)", "Title (Series, #2) 001 - 010 (c1)", "v05x12-15 v01b 78A 10AI", "[X 3] - 4-10 March 2023, 2021-05 Heft 12-1975", "Том №5 (глава 3) Выпуск №50", "Ranma_½ 第二部 Ⅲ ｶﾞ º 第三章 １０½ №", "Tomes I-XXXIX Vol. IIII", "1,001 - 012 (v03) Part 3 - 007 12 2019", "第二章 第3話【上】(상) 시즌 2 - 第12話", "1 том 5 глава т1гл5 #12v2 03.05.2021 18.2021"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := Detect(s)
		for what, v := range map[string]*float64{"number": n.Number, "chapter": n.Chapter, "its end": n.NumberTo} {
			if v != nil && (*v <= -1e7 || *v >= 1e7 || *v != *v) {
				t.Errorf("%q: %s %v", s, what, *v)
			}
		}
		if n.Volume != nil && (*n.Volume < 0 || *n.Volume >= 1e7) {
			t.Errorf("%q: volume %d", s, *n.Volume)
		}
		if n.VolumeTo != nil && *n.VolumeTo <= *n.Volume || n.ChapterTo != nil && *n.ChapterTo <= *n.Chapter || n.NumberTo != nil && *n.NumberTo <= *n.Number {
			t.Errorf("%q: a range that ends before it begins: %+v", s, n)
		}
		for _, text := range []string{n.Series, n.Title, n.Group} {
			if text != strings.TrimSpace(text) || strings.ToValidUTF8(text, "") != text || len(text) > 4*maxName {
				t.Errorf("%q: text %q", s, text)
			}
		}
	})
}

func BenchmarkDetect(b *testing.B) {
	for b.Loop() {
		Detect("[Group] Page Blanche v01 c010 (2012) (digital).cbz")
	}
}
