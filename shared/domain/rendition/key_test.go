package rendition

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/fault"
)

var (
	tenantA = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	bookA   = uuid.MustParse("33333333-3333-4333-8333-333333333333")
	secretA = []byte(strings.Repeat("a", 32))
	secretB = []byte(strings.Repeat("b", 32))
)

func TestKeysSayWhatTheyShow(t *testing.T) {
	t.Parallel()
	i := &page.Index{BookID: bookA, Fingerprint: "f1"}
	keys := []string{coverKey(tenantA, bookA, secretA, "f1", Cover{400, 85}), coverKey(tenantA, bookA, secretA, "f1", Cover{2000, 100}), pageKey(tenantA, secretA, i, 1, nil)}
	for _, s := range []imaging.Spec{{Width: 300, Format: imaging.JPEG}, {Height: 3000, Format: imaging.PNG}, {Width: 150, Height: 1200, Format: imaging.WebP}, {Format: imaging.WebP}} {
		keys = append(keys, pageKey(tenantA, secretA, i, 20_000, &s))
	}
	seen := map[string]bool{}
	for _, k := range keys {
		p, ok := parse(k)
		if !ok || p.tenant != tenantA || p.book != bookA || seen[k] {
			t.Errorf("%s: %+v, %v", k, p, ok)
		}
		seen[k] = true
		if !p.authentic(secretA, "f1") || p.authentic(secretB, "f1") || p.authentic(secretA, "f2") || p.authentic(secretA, "") {
			t.Errorf("%s is authentic for whom it should not be, or not for its own", k)
		}
		// The mac of a cover includes the form.
		other := strings.NewReplacer("400-85", "401-85", "2000-100", "2000-99").Replace(k)
		if q, ok := parse(other); other != k && (!ok || q.authentic(secretA, "f1")) {
			t.Errorf("%s is authentic", other)
		}
	}
}

func TestOneSpellingOfAKey(t *testing.T) {
	t.Parallel()
	const head = "page/11111111-1111-4111-8111-111111111111/33333333-3333-4333-8333-333333333333/0123456789abcdef0123456789abcdef"
	const cover = "11111111-1111-4111-8111-111111111111/cover/33333333-3333-4333-8333-333333333333/0123456789abcdef0123456789abcdef"
	if _, ok := parse(cover + "/400-85.jpeg"); !ok {
		t.Fatal("the pattern of this test is wrong")
	}
	if _, ok := parse(head + "/1/300x.webp"); !ok {
		t.Fatal("the pattern of this test is wrong")
	}
	for _, bad := range []string{"", "/", head, head + "/1", head + "/1/", head + "/01/original", head + "/1/original/", head + "/1/Original", head + "/x/original", head + "/-1/original",
		head + "/1/301x.webp", head + "/1/300x0.webp", head + "/1/0300x.webp", head + "/1/300.webp", head + "/1/300x.gif", head + "/1/300x.jpg", head + "/1/300x.webp.webp", head + "/1/300x.webp;.css",
		head + "/1/5000x.webp", head + "/1/+300x.webp", "/" + head + "/1/original", head + "//1/original", head + "/1/%6friginal", strings.ToUpper(head) + "/1/original",
		strings.ReplaceAll(head, "-", "") + "/1/original", strings.Replace(head, "page", "other", 1) + "/1/original", cover + "/1/original",
		cover + "/400.jpeg", cover + "/0400-85.jpeg", cover + "/400-85.png",
		head + "/" + strings.Repeat("1", 300) + "/original"} {
		if p, ok := parse(bad); ok {
			t.Errorf("%q is taken for %+v", bad, p)
		}
	}
}

// The limits of a request, of the CDN address, and of the rendering are the same.
func TestBoxOfARequest(t *testing.T) {
	t.Parallel()
	i := &page.Index{BookID: bookA, Fingerprint: "f1"}
	for query, want := range map[string]imaging.Spec{
		"width=1":                       {Width: 16, Format: imaging.JPEG},
		"width=1199&height=3000":        {Width: 1100, Height: 3000, Format: imaging.JPEG},
		"width=3001":                    {Width: 3000, Format: imaging.JPEG},
		"height=4096&format=webp":       {Height: 3000, Format: imaging.WebP},
		"width=20001&height=2147483647": {Width: 3000, Height: 3000, Format: imaging.JPEG},
		"format=png":                    {Format: imaging.PNG},
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		spec, ok, err := specOf(q)
		if spec != want || !ok || err != nil {
			t.Errorf("%s: %+v, %v, %v", query, spec, ok, err)
			continue
		}
		if p, ok := parse(pageKey(tenantA, secretA, i, 1, &spec)); !ok || *p.spec != spec {
			t.Errorf("%s: its address asks for %+v, %v", query, p.spec, ok)
		}
	}
	for _, bad := range []string{"width=0", "width=-1", "height=2147483648", "height=99999999999999999999", "width=1e3", "width=x"} {
		q, err := url.ParseQuery(bad)
		if err != nil {
			t.Fatal(err)
		}
		if spec, _, err := specOf(q); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %+v, %v", bad, spec, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("page/11111111-1111-4111-8111-111111111111/33333333-3333-4333-8333-333333333333/m/1/300x150.webp")
	f.Add("11111111-1111-4111-8111-111111111111/cover/33333333-3333-4333-8333-333333333333/m/400-85.jpeg")
	f.Fuzz(func(t *testing.T, key string) {
		p, ok := parse(key)
		if !ok {
			return
		}
		if strings.ContainsAny(key, "?#%\\ *") && !strings.ContainsAny(p.mac, "?#%\\ *") {
			t.Errorf("%q holds more than it means", key)
		}
		if p.spec != nil && (p.spec.Width != imaging.Ladder(p.spec.Width) || p.spec.Height != imaging.Ladder(p.spec.Height)) {
			t.Errorf("%q is a size of its own: %+v", key, p.spec)
		}
	})
}
