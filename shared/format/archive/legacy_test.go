package archive

import (
	"slices"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// Names in the Windows encoding of a country are decoded correctly, even a single one.
func TestLegacyNames(t *testing.T) {
	t.Parallel()
	for page, names := range map[encoding.Encoding][]string{
		simplifiedchinese.GBK:   {"海贼王/第01话/001.jpg", "封面.jpg", "进击的巨人[01].jpg", "灌篮高手 Vol.01.jpg", "JOJO的奇妙冒险 第4部.jpg", "银魂_01.jpg", "第1话 图片.jpg", "阿衰online 1.jpg"},
		traditionalchinese.Big5: {"海賊王/第01話/001.jpg", "功夫旋風兒 許功蓋.jpg", "進擊的巨人[01].jpg", "鋼之鍊金術師 Vol.01.jpg", "七龍珠 第3回.jpg"},
		korean.EUCKR:            {"원피스 1권/001.jpg", "나루토 제01화.jpg", "표지.jpg", "진격의 거인 01.jpg", "One Piece 원피스 01.jpg", "강철의 연금술사.jpg"},
		charmap.CodePage866: {"Том 1 Глава 2/001.jpg", "обложка.jpg", "ВАН ПИС 01.jpg", "Человек-паук №1.jpg", "Ёжик в тумане.jpg", "Ключи Локков.jpg",
			"Spawn Спаун 1.jpg"},
		japanese.ShiftJIS:   {"進撃の巨人 第01巻/001.jpg", "ワンピース 1.jpg", "表紙.jpg", "まで.jpg", "漫画1.jpg", "ソ能表.jpg", "Dr.スランプ 1.jpg", "けいおん！.jpg"},
		charmap.CodePage437: {"El Niño 01.jpg", "Ñu.jpg", "Muñoz y niñas.jpg", "à é è ù ê.jpg", "Größe Übel Öl.jpg", "blåbær.jpg", "¿Qué? ñ.jpg"},
		charmap.CodePage850: {"São Paulo Não.jpg", "Água Ártica.jpg", "À l'abri.jpg", "Îles.jpg", "coração.jpg", "ÀÉ.jpg"},
	} {
		var all []part
		for _, want := range names {
			raw, err := page.NewEncoder().String(want)
			if err != nil {
				t.Fatal(want, err)
			}
			all = append(all, part{name: raw})
			if got := mustRead(t, build(shape{}, part{name: raw})).Entries[0].Name; got != want {
				t.Errorf("%s: %q, want %q", page, got, want)
			}
		}
		var got []string
		for _, e := range mustRead(t, build(shape{}, all...)).Entries {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, names) {
			t.Errorf("%s, together: %q, want %q", page, got, names)
		}
	}
}

// One name that is not UTF-8 shows that the others are not either, even if their bytes are valid UTF-8.
func TestLegacyNamesThatCouldBeUTF8(t *testing.T) {
	t.Parallel()
	names := []string{"\xcd\xbc\xc6\xac1.jpg", "\xb5\xda2\xbb\xb0.jpg", "3.jpg"}
	entries := mustRead(t, build(shape{}, part{name: names[0]}, part{name: names[1]}, part{name: names[2]}, part{name: "é.jpg", flags: flagUTF8},
		part{name: "漫画.jpg"})).Entries
	for i, want := range []string{"图片1.jpg", "第2话.jpg", "3.jpg", "é.jpg", "漫画.jpg"} {
		if entries[i].Name != want {
			t.Errorf("%q, want %q", entries[i].Name, want)
		}
	}
}
