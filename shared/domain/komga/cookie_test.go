package komga_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// with returns a client that sends one header only.
func with(c *testkit.Client, header, value string) *testkit.Client {
	other := *c
	other.Header = http.Header{header: {value}}
	return &other
}

// Some apps send the password once, and then only the cookie of the session that Komga begins.
func TestCookie(t *testing.T) {
	t.Parallel()
	s, sh := serve(t)
	s.DB.Set(t, s.Two, setting.KomgaPrefix, "komga")
	me, admin := s.User(t, "one", "reader"), s.User(t, "one", "admin")
	basic := func(name, password string) *testkit.Client {
		return with(me, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	}
	book := root + "/v1/books/" + sh.books["Able"][0].String()
	first := basic(me.Name, testkit.Password)
	r := first.Do("GET", root+"/v2/users/me", nil).Want(200)
	given, attributes, _ := strings.Cut(r.Header.Get("Set-Cookie"), "; ")
	if !strings.HasPrefix(given, "KOMGA-SESSION=") || attributes != "Path=/komga; Max-Age=3600; HttpOnly; SameSite=Strict" {
		t.Fatalf("the cookie is %s; %s", given, attributes)
	}
	overHTTPS, w := httptest.NewRequest("GET", "https://one.test"+root+"/v2/users/me", nil), httptest.NewRecorder()
	overHTTPS.Header = first.Header
	if s.API.Router.ServeHTTP(w, overHTTPS); !strings.Contains(w.Header().Get("Set-Cookie"), "; Secure") {
		t.Errorf("over https: %d, %v", w.Code, w.Header())
	}
	cookie := with(me, "Cookie", given)
	if got := cookie.Do("GET", root+"/v2/users/me", nil).Want(200); got.Map()["id"] != me.ID.String() || got.Header.Get("Set-Cookie") != "" {
		t.Errorf("with the cookie: %s, %v", got.Body, got.Header)
	}
	cookie.Do("PUT", root+"/v2/series/"+sh.series["Able"].String()+"/read-progress/tachiyomi", `{"lastBookNumberSortRead":1}`).Want(204)
	cookie.Do("DELETE", book+"/read-progress", nil).Want(204)
	for _, path := range []string{"/api/v1/books", "/api/v1/auth/me"} { // it counts below the prefix only
		cookie.Do("GET", path, nil).Want(401)
	}

	// What a page of another site makes a browser send.
	for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		crossing := with(cookie, "Cookie", given)
		crossing.Header.Set(header, value)
		crossing.Do("PATCH", book+"/read-progress", `{"page":2}`).Want(401)
		crossing.Do("POST", root+"/v1/books/list", `{}`).Want(401)
	}
	same := with(cookie, "Cookie", given)
	same.Header.Set("Sec-Fetch-Site", "same-origin")
	same.Do("PATCH", book+"/read-progress", `{"page":2}`).Want(204)

	// Not given again to who has a good one, and only for a password.
	again := basic(me.Name, testkit.Password)
	again.Header.Set("Cookie", given)
	if got := again.Do("GET", book, nil).Want(200).Header.Get("Set-Cookie"); got != "" {
		t.Errorf("given again: %s", got)
	}
	again.Header.Set("Cookie", given+"x")
	if got := again.Do("GET", book, nil).Want(200).Header.Get("Set-Cookie"); got == "" {
		t.Error("no cookie in place of a bad one")
	}
	key := s.Key(t, admin, auth.BooksRead)
	for what, c := range map[string]*testkit.Client{"token": me, "key": key, "key as password": basic("any", key.Header.Get("X-Api-Key"))} {
		if got := c.Do("GET", book, nil).Want(200).Header.Get("Set-Cookie"); got != "" {
			t.Errorf("%s gets a cookie: %s", what, got)
		}
	}
	basic(me.Name, "wrong").Do("GET", book, nil).Want(401)
	// A token is no password, also when it is cached: otherwise whoever has it would get new ones without end.
	for _, token := range []string{strings.TrimPrefix(me.Header.Get("Authorization"), "Bearer "), strings.TrimPrefix(given, "KOMGA-SESSION=")} {
		with(me, "Authorization", "Bearer "+token).Do("GET", book, nil).Want(200)
		if got := basic("", token).Do("GET", book, nil).Want(401).Header.Get("Set-Cookie"); got != "" {
			t.Errorf("a token as password gets a cookie: %s", got)
		}
	}

	foreign := with(cookie, "Cookie", given)
	foreign.Host = "two.test"
	foreign.Do("GET", root+"/v2/users/me", nil).Want(401)
	s.DB.Exec(t, "update account set is_active = false where id = $1", me.ID)
	cookie.Do("GET", root+"/v2/users/me", nil).Want(401)
	s.DB.Exec(t, "update account set is_active = true, generation = generation + 1 where id = $1", me.ID)
	cookie.Do("GET", root+"/v2/users/me", nil).Want(401)
}
