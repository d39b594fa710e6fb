package naming

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		want float64
		ok   bool
	}{
		{"Page Blanche #010 (2012) (digital).cbz", 10, true},
		{"Page Blanche #1.5 (2012).cbz", 1.5, true},
		{"Emakimono 10.5.cbz", 10.5, true},
		{"Emakimono 10.5", 10.5, true},
		{"ハルコさんの彼氏 v01 c002.cbz", 2, true},
		{"ハルコさんの彼氏 v02.cb7", 2, true},
		{"ハルコさんの彼氏v02.cb7", 2, true},
		{"鳥の眼 001.cbz", 1, true},
		{"鳥の眼 第3話.cbz", 3, true},
		{"Page Blanche (2012).cbz", 0, false},
		{"Page Blanche 2012.cbz", 0, false},
		{"Page Blanche (3) (2012).cbz", 3, true},
		{"Page Blanche.cbz", 0, false},
		{"1999.cbz", 1999, true},
		{"12.cbz", 12, true},
		{"Title part 3.cbz", 3, true},
		{"Title Episode 12.cbz", 12, true},
		{"Title ep.7.cbz", 7, true},
		{"Title Vol. 3.cbz", 3, true},
		{"Title v01.5.cbz", 1.5, true},
		{"Title (c2c).cbz", 0, false},
		{"Title (c2c) 004.cbz", 4, true},
		{"100 Months 005.cbz", 5, true},
		{"2000 Leagues 12.cbz", 12, true},
		{"Title 03 of 06.cbz", 3, true},
		{"Title 03 (of 06).cbz", 3, true},
		{"Rar 5 solid 002.cbr", 2, true},
		{"Page Blanche copy.cbz", 0, false},
		{"Title 20241231.cbz", 0, false},
		{"Divisão3x.cbz", 0, false},
		{"library/x 7/Title 0.5.cbz", 0.5, true},
		{"", 0, false},
		{".cbz", 0, false},
	}
	for _, tt := range tests {
		got, ok := value(Detect(tt.name).Number)
		if got != tt.want || ok != tt.ok {
			t.Errorf("number of %q = %v, %v; want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// value is what a name states, if it does.
func value[T int | float64](v *T) (T, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

func TestVolumeAndChapter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		volume  int
		hasVol  bool
		chapter float64
		hasChap bool
	}{
		{"Title v01 c002.cbz", 1, true, 2, true},
		{"v01.cbz", 1, true, 0, false},
		{"Title VOL.12.cbz", 12, true, 0, false},
		{"Title Volume 3 Chapter 10.5.cbz", 3, true, 10.5, true},
		{"Title_v3_ch.4.cbz", 3, true, 4, true},
		{"Title v01.5.cbz", 0, false, 0, false},
		{"Title v01c002.cbz", 1, true, 2, true},
		{"Title 12 (2012).cbz", 0, false, 0, false},
		{"Rev3 abc4.cbz", 0, false, 0, false},
		{"Rev3 v4.cbz", 4, true, 0, false},
		{"Title (c2c).cbz", 0, false, 0, false},
		{"第1巻 c003.cbz", 1, true, 3, true},
		{"Title v12345678901.cbz", 0, false, 0, false},
	}
	for _, tt := range tests {
		v, okV := value(Detect(tt.name).Volume)
		c, okC := value(Detect(tt.name).Chapter)
		if v != tt.volume || okV != tt.hasVol || c != tt.chapter || okC != tt.hasChap {
			t.Errorf("%q = volume %v %v, chapter %v %v; want %v %v, %v %v",
				tt.name, v, okV, c, okC, tt.volume, tt.hasVol, tt.chapter, tt.hasChap)
		}
	}
}

func TestStem(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a/b/Title 1.cbz":        "Title 1",
		"Emakimono 10.5":         "Emakimono 10.5",
		"Emakimono 10.5.cbz":     "Emakimono 10.5",
		"Emakimono 10.7z":        "Emakimono 10",
		"x.cb7":                  "x",
		".hidden":                ".hidden",
		"a/b/":                   "b",
		"Mr. Smith and friends":  "Mr. Smith and friends",
		"Mr. Smith (2012).epub":  "Mr. Smith (2012)",
		"":                       "",
		"no extension but long.": "no extension but long.",
	} {
		if got := Stem(in); got != want {
			t.Errorf("Stem(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"E\u0301clair 001": "\u00c9clair 001", "\u30cf\u3099": "\u30d0", "A\r\n B\tC\nD": "A  B C D", "as  it is": "as  it is",
		"a\u202egnp.cbz": "agnp.cbz", "\u2067א\u2069 1": "א 1", "\u200fא": "\u200fא",
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"  Le Vrai  Régime ANTI-cancer ": "le vrai regime anti-cancer",
		"Ēmakimono":                      "emakimono",
		"ガンダム":                           "ガンダム",
		"か\u3099":                        "が",
		"İstanbul":                       "istanbul",
		"Ελλάδα":                         "ελλάδα",
		"מפליגים":                        "מפליגים",
		"a\xffb":                         "ab",
		"":                               "",
	} {
		if got := Normalize(in); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", in, got, want)
		}
	}
	if got := SortTitle(" The  Waste\tLand "); got != "The Waste Land" {
		t.Errorf("SortTitle = %q", got)
	}
}

func TestCompareOrders(t *testing.T) {
	t.Parallel()
	// "a1" is a prefix of "a01b" by value, so it sorts before it.
	sorted := []string{
		"1.jpg", "4.jpg", "10.jpg", "025.jpg", "99999999999999999999998.jpg", "99999999999999999999999.jpg",
		"A1", "a1", "a1a", "a01b", "page_2", "Page_10", "第2話", "第１０話",
	}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := sign(Compare(a, b)); got != sign(i-j) {
				t.Errorf("Compare(%q, %q) = %d, want %d", a, b, got, sign(i-j))
			}
		}
	}
	paths := []string{"c1/1.jpg", "c2/1.jpg", "c2/2.jpg", "c2 extra/0.jpg", "c10/1.jpg", "cover.jpg"}
	shuffled := []string{paths[4], paths[2], paths[5], paths[3], paths[0], paths[1]}
	slices.SortFunc(shuffled, ComparePath)
	if !slices.Equal(shuffled, paths) {
		t.Errorf("ComparePath order %q, want %q", shuffled, paths)
	}
	files := []string{"c/1.jpg", "c/1 b.jpg", "c/1-2.jpg", "c/1.5.jpg", "c/2.jpg", "c-d/1.jpg", "page.jpg", "page 2.jpg", "page 10.jpg", "page-3.jpg", "page_1", "x.gif", "x.jpg",
		"書/(上).cbz", "書/(中).cbz", "書/(下).cbz", "本/本 上巻.cbz", "本/本 中巻.cbz", "本/本 下巻.cbz",
		"本/陰陽師 前編.cbz", "本/陰陽師 中編.cbz", "本/陰陽師 後編.cbz", "本/陰陽師 巻一.cbz", "本/陰陽師 巻三.cbz", "本/陰陽師 巻二十.cbz",
		"話/第一話 七.cbz", "話/第二話 三.cbz", "話/第七話.cbz", "話/第一〇話.cbz", "話/第十二話.cbz", "話/第二十話.cbz", "話/第百二話.cbz", "話/第一百零五話.cbz", "話/第一千零一話.cbz",
		"語/其の一.cbz", "語/其の二.cbz", "語/其の三.cbz", "語/其の十.cbz"}
	for i, a := range files {
		for j, b := range files {
			if got := sign(CompareFile(a, b)); got != sign(i-j) {
				t.Errorf("CompareFile(%q, %q) = %d, want %d", a, b, got, sign(i-j))
			}
		}
	}
}

// The order must be total, or sorting gives a result that depends on the input.
func TestCompareIsTotal(t *testing.T) {
	t.Parallel()
	var words []string
	for _, a := range []string{"", "a", "A", "0", "01", "1", "１", "é", "/"} {
		for _, b := range []string{"", "b", "0", "00", "10", ".", "/"} {
			for _, c := range []string{"", "a", "1", "01"} {
				words = append(words, a+b+c)
			}
		}
	}
	words = append(words, "第一", "第1", "上巻", "1巻", "一", "第 十 話", "中下", "前編", "巻一", "卷三卷七", "その〇")
	slices.Sort(words)
	words = slices.Compact(words)
	for _, compare := range []func(a, b string) int{Compare, ComparePath, CompareFile} {
		is := make([][]int, len(words)) // is[a][b] compares two words
		for a := range words {
			for _, b := range words {
				is[a] = append(is[a], sign(compare(words[a], b)))
			}
		}
		for a := range words {
			for b := range words {
				if is[a][b] != -is[b][a] || is[a][b] == 0 && a != b {
					t.Fatalf("not antisymmetric: %q, %q", words[a], words[b])
				}
				if is[a][b] > 0 {
					continue
				}
				for c := range words {
					if is[b][c] <= 0 && is[a][c] > 0 {
						t.Fatalf("not transitive: %q <= %q <= %q", words[a], words[b], words[c])
					}
				}
			}
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func FuzzNames(f *testing.F) {
	f.Add("Page Blanche #010 (2012) (digital).cbz", "鳥の眼 001.cbz")
	f.Add("Title v01 c002.cbz", "v1.5\xff(")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{a, b} {
			name := Detect(s)
			if n, ok := value(name.Number); ok && (n <= -1e7 || n >= 1e7) {
				t.Errorf("number of %q = %v", s, n)
			}
			if v, ok := value(name.Volume); ok && (v < 0 || v >= 1e7) {
				t.Errorf("volume of %q = %v", s, v)
			}
			if n := Normalize(s); !utf8.ValidString(n) || n != strings.TrimSpace(n) {
				t.Errorf("Normalize(%q) = %q", s, n)
			}
		}
		if Compare(a, b) != 0 == (a == b) || sign(Compare(a, b)) != -sign(Compare(b, a)) {
			t.Errorf("Compare(%q, %q) = %d, reversed %d", a, b, Compare(a, b), Compare(b, a))
		}
		if sign(ComparePath(a, b)) != -sign(ComparePath(b, a)) {
			t.Errorf("ComparePath(%q, %q) is not antisymmetric", a, b)
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	for b.Loop() {
		Compare("PageBlanche_Page_009.jpg", "PageBlanche_Page_010.jpg")
	}
}
