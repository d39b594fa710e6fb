package blob

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// listings are responses of stores, and some invalid ones.
var listings = []struct {
	name, doc string
	plain     bool // read without encoding/xml
}{
	{"AWS", `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>a/</Prefix><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken><KeyCount>2</KeyCount><MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated><Contents><Key>a/Tom &amp; Jerry &lt;1&gt; &apos;x&apos;.cbz</Key><LastModified>2026-10-12T17:50:30.000Z</LastModified><ETag>&quot;fba9dede5f27731c9771645a39863328-7&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><Size>434234</Size><StorageClass>STANDARD</StorageClass><Owner><ID>1</ID></Owner></Contents><Contents><Key>a/日本.cbz</Key><LastModified>2026-10-12T17:50:30.123Z</LastModified><Size>0</Size></Contents><CommonPrefixes><Prefix>a/b&#34;/</Prefix></CommonPrefixes></ListBucketResult>`, true},
	{"empty", `<ListBucketResult><IsTruncated>false</IsTruncated><Prefix/></ListBucketResult>`, true},
	{"line breaks", "<ListBucketResult>\n  <Contents>\n    <Key>a\n</Key>\n    <Size>1</Size>\n  </Contents>\n</ListBucketResult>\n", true},
	{"a folder without a name", `<ListBucketResult><CommonPrefixes></CommonPrefixes></ListBucketResult>`, false},
	{"a folder with an empty name", `<ListBucketResult><CommonPrefixes><Prefix/></CommonPrefixes></ListBucketResult>`, false},
	{"a folder with two names", `<ListBucketResult><CommonPrefixes><Prefix>a/</Prefix><Prefix>b/</Prefix></CommonPrefixes></ListBucketResult>`, false},
	{"keys as in a URL", `<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%2Bb/c+d%01%25.cbz</Key></Contents><CommonPrefixes><Prefix>%E6%97%A5/</Prefix></CommonPrefixes></ListBucketResult>`, false},
	{"no URL", `<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>100%.cbz</Key></Contents></ListBucketResult>`, false},
	{"a character that XML has not", `<ListBucketResult><Contents><Key>a&#x1;.cbz</Key></Contents></ListBucketResult>`, false},
	{"comment", `<ListBucketResult><!-- <Contents> --><Contents><Key>a</Key></Contents></ListBucketResult>`, false},
	{"CDATA", `<ListBucketResult><Contents><Key><![CDATA[a<b]]></Key></Contents></ListBucketResult>`, false},
	{"character reference", `<ListBucketResult><Contents><Key>&#xe9;.cbz</Key></Contents></ListBucketResult>`, false},
	{"attribute", `<ListBucketResult><Contents><Key a="b">x</Key></Contents></ListBucketResult>`, false},
	{"carriage return", "<ListBucketResult><Contents><Key>a\r\nb</Key></Contents></ListBucketResult>", false},
	{"namespace prefix", `<s:ListBucketResult xmlns:s="x"><s:Contents><s:Key>a</s:Key></s:Contents></s:ListBucketResult>`, false},
	{"nested in a key", `<ListBucketResult><Contents><Key><b>x</b>a</Key></Contents></ListBucketResult>`, false},
	{"cut off", `<ListBucketResult><Contents><Key>a</Key></Contents>`, false},
	{"wrong end", `<ListBucketResult><Contents><Key>a</Keys></Contents></ListBucketResult>`, false},
	{"deep", `<ListBucketResult><a><b><c><d><e/></d></c></b></a></ListBucketResult>`, false},
	{"an error", `<Error><Code>SlowDown</Code></Error>`, false},
	{"a page", `<html><body>hello</body></html>`, false},
	{"no XML", "hello", false},
	{"nothing", "", false},
	{"bad size", `<ListBucketResult><Contents><Size>x</Size></Contents></ListBucketResult>`, false},
	{"a year of five digits", `<ListBucketResult><Contents><Key>a</Key><LastModified>10000-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>`, false},
	{"a year before all", `<ListBucketResult><Contents><Key>a</Key><LastModified>-2147-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>`, false},
	{"bad time", `<ListBucketResult><Contents><LastModified>yesterday</LastModified></Contents></ListBucketResult>`, false},
}

func TestReadListing(t *testing.T) {
	for _, c := range listings {
		t.Run(c.name, func(t *testing.T) {
			got, err := readListing([]byte(c.doc))
			want, wantErr := readAnyListing([]byte(c.doc))
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || !same(got, want) {
				t.Errorf("%+v %v, want %+v %v", got, err, want, wantErr)
			}
			var p plain
			if p.read([]byte(c.doc)) != c.plain {
				t.Errorf("read without encoding/xml: %t, want %t", !c.plain, c.plain)
			}
		})
	}
	got, err := readListing([]byte(listings[0].doc))
	if err != nil || len(got.objects) != 2 || got.objects[0].Key != "a/Tom & Jerry <1> 'x'.cbz" || got.objects[0].ETag != `"fba9dede5f27731c9771645a39863328-7"` ||
		got.objects[1].Modified.Nanosecond() != 123e6 || got.folders[0] != `a/b"/` || !got.more || got.next == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNamelessFolderIsRefused(t *testing.T) {
	for _, folder := range []string{"", "<Prefix/>", "<Prefix></Prefix>"} {
		if got, err := readListing([]byte("<ListBucketResult><CommonPrefixes>" + folder + "</CommonPrefixes></ListBucketResult>")); err == nil {
			t.Errorf("%q: %+v", folder, got)
		}
	}
}

// A listing that has more pages but no token would be requested again and again, from its start.
func TestListingThatDoesNotGoOn(t *testing.T) {
	asked := 0
	url, _, _ := served(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		io.WriteString(w, `<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents></ListBucketResult>`)
	})
	for page, err := range troubled(t, url).List(t.Context(), "books", "", "") {
		if err == nil || !strings.Contains(err.Error(), "no continuation token") || asked > 1 {
			t.Fatalf("asked %d times, %v, %v; want an error", asked, page, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestTimesThatNoListingWrites(t *testing.T) {
	for year, known := range map[string]bool{"10000": false, "285200616": false, "-2147": false, "9999": true, "0001": true} {
		got, err := readListing([]byte(`<ListBucketResult><Contents><Key>a</Key><LastModified>` + year + `-07-24T16:00:00Z</LastModified><Size>7</Size></Contents></ListBucketResult>`))
		if err != nil || len(got.objects) != 1 || got.objects[0].Size != 7 || got.objects[0].Modified.IsZero() == known {
			t.Errorf("%s: %+v, %v", year, got, err)
		}
	}
}

// Amazon S3 sends a key with a control character as invalid XML, unless URL encoding is requested.
func TestKeysThatXMLCannotHold(t *testing.T) {
	var asked []string
	url, _, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("encoding-type"))
		if r.URL.Query().Get("encoding-type") == "url" {
			io.WriteString(w, `<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>comics/a%01%2B+b%25.cbz</Key></Contents><Contents><Key>comics/%00%FF.cbz</Key></Contents>`+
				`<CommonPrefixes><Prefix>comics/%07/</Prefix></CommonPrefixes></ListBucketResult>`)
			return
		}
		io.WriteString(w, `<ListBucketResult><Contents><Key>comics/a&#x1;+ b%.cbz</Key></Contents></ListBucketResult>`)
	})
	folders, objects, _, err := troubled(t, url).Folders(t.Context(), "books", "comics/", "", 1)
	if err != nil || len(objects) != 2 || objects[0].Key != "comics/a\x01+ b%.cbz" || objects[1].Key != "comics/\uFFFD\uFFFD.cbz" || len(folders) != 1 || folders[0] != "comics/\x07/" {
		t.Errorf("%q %v, %v", folders, objects, err)
	}
	if fmt.Sprint(asked) != "[ url]" {
		t.Errorf("asked %q", asked)
	}
}

func same(a, b listing) bool {
	if len(a.objects) != len(b.objects) || len(a.folders) != len(b.folders) || a.more != b.more || a.next != b.next {
		return false
	}
	for i, o := range a.objects {
		p := b.objects[i]
		if o.Key != p.Key || o.ETag != p.ETag || o.Size != p.Size || !o.Modified.Equal(p.Modified) {
			return false
		}
	}
	return len(a.folders) == 0 || reflect.DeepEqual(a.folders, b.folders)
}

// FuzzReadListing compares the fast parser with encoding/xml: if both accept a document, the results are equal.
func FuzzReadListing(f *testing.F) {
	for _, c := range listings {
		f.Add(c.doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		var p plain
		if !p.read([]byte(doc)) {
			return
		}
		if want, err := readAnyListing([]byte(doc)); err == nil && !same(p.listing, want) {
			t.Errorf("%+v, encoding/xml: %+v", p.listing, want)
		}
	})
}

func thousand() []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>x</Name>`)
	for i := range 1000 {
		fmt.Fprintf(&b, `<Contents><Key>books/Series %05d/Series %05d #%02d.cbz</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>`+
			`<ETag>&#34;%032d&#34;</ETag><Size>52428800</Size><StorageClass>STANDARD</StorageClass></Contents>`, i/20, i/20, i%20, i)
	}
	b.WriteString(`</ListBucketResult>`)
	return []byte(b.String())
}

// BenchmarkReadListing reads a thousand objects; BenchmarkReadAnyListing leaves them to encoding/xml.
func BenchmarkReadListing(b *testing.B) {
	doc := thousand()
	for b.Loop() {
		if l, err := readListing(doc); err != nil || len(l.objects) != 1000 {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadAnyListing(b *testing.B) {
	doc := thousand()
	for b.Loop() {
		if l, err := readAnyListing(doc); err != nil || len(l.objects) != 1000 {
			b.Fatal(err)
		}
	}
}
