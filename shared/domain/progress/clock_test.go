package progress_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/testkit"
)

// A device whose clock is slightly behind continues after another device, or after a client without times: its
// positions count. Older positions, or ones in the wrong order, do not, and marks are not undone.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	s.DB.Exec(t, "update book set format = 'epub' where id = $1", r.book)
	book := "/api/v1/books/" + r.book.String()
	put := func(device string, at float64, ago time.Duration, want int) {
		t.Helper()
		r.who.Do("PUT", book+"/progression", fmt.Sprintf(`{"device":{"id":"%s"},"locator":{"href":"%s","locations":{"totalProgression":%v}},"modified":"%s"}`,
			device, device, at, time.Now().Add(-ago).UTC().Format(time.RFC3339Nano))).Want(want)
	}
	plain := func(at float64) {
		t.Helper()
		r.who.Do("PUT", book+"/progression", fmt.Sprintf(`{"device":{"id":"web"},"locator":{"href":"web","locations":{"totalProgression":%v}}}`, at)).Want(204)
	}
	is := func(device string, at float64) {
		t.Helper()
		m := r.who.Do("GET", book+"/progression", nil).Want(200).Map()
		if got := m["device"].(map[string]any)["id"]; got != device {
			t.Errorf("the place is that of %v, want %s", got, device)
		}
		if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["progressPercentage"] != at {
			t.Errorf("the progress is %v, want %v", p, at)
		}
	}
	plain(0.5)
	for i := range 3 { // every page turn, not only the first
		at := 0.25 + float64(i)/100
		put("late", at, 4*time.Minute, 204)
		is("late", at)
	}
	plain(0.5)
	put("late", 0.3, 6*time.Minute, 409)
	is("web", 0.5)
	put("late", 0.3, 4*time.Minute, 204)
	is("late", 0.3)

	// Two page turns of one device arrive in the wrong order: its own clock decides.
	r.who.Do("POST", book+"/unread", nil).Want(204)
	s.DB.Exec(t, "update reading_session set ended_at = ended_at - interval '1 hour', started_at = started_at - interval '1 hour', recorded_at = recorded_at - interval '1 hour'")
	put("phone", 0.4, 2*time.Minute, 204)
	put("phone", 0.3, 3*time.Minute, 409)
	is("phone", 0.4)

	// Marks since then stay.
	r.who.Do("POST", book+"/read", nil).Want(200)
	put("late", 0.3, time.Minute, 409)
	if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["completed"] != true {
		t.Errorf("the progress is %v", p)
	}
	r.who.Do("POST", book+"/unread", nil).Want(204)
	put("late", 0.3, time.Minute, 409)
	r.who.Do("GET", book+"/progress", nil).Want(204)
}

// A position that is sent again, because the response was lost, does not override what another device sent meanwhile.
func TestPositionSentAgain(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	s.DB.Exec(t, "update book set format = 'epub' where id = $1", r.book)
	book := "/api/v1/books/" + r.book.String()
	position := func(device string, at float64, ago time.Duration) string {
		return fmt.Sprintf(`{"device":{"id":"%s"},"locator":{"href":"%s","locations":{"totalProgression":%v}},"modified":"%s"}`,
			device, device, at, time.Now().Add(-ago).UTC().Format(time.RFC3339Nano))
	}
	phone, tablet := position("phone", 0.1, 2*time.Minute), position("tablet", 0.6, time.Minute)
	for _, body := range []string{phone, tablet, phone, tablet, phone} {
		r.who.Do("PUT", book+"/progression", body).Want(204)
	}
	if m := r.who.Do("GET", book+"/progression", nil).Want(200).Map(); m["device"].(map[string]any)["id"] != "tablet" {
		t.Errorf("the place is %v", m)
	}
	if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["progressPercentage"] != 0.6 {
		t.Errorf("the progress is %v", p)
	}
	var sessions int
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from reading_session where device_id = 'phone'").Scan(&sessions); err != nil || sessions != 1 {
		t.Errorf("%d sessions of the phone, want 1; %v", sessions, err)
	}
	r.who.Do("PUT", book+"/progression", position("phone", 0.2, 90*time.Second)).Want(204) // another position counts
	if p := r.who.Do("GET", book+"/progress", nil).Want(200).Map(); p["progressPercentage"] != 0.2 {
		t.Errorf("the progress is %v", p)
	}
}

// A clock may show anything: times are limited to what a response can contain.
func TestClockOfLongAgo(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	book := "/api/v1/books/" + r.book.String()
	for _, modified := range []string{"0000-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"} {
		r.who.Do("PUT", book+"/progression", `{"locator":{"href":"a","locations":{"totalProgression":1}},"modified":"`+modified+`"}`).Want(204)
		r.who.Do("GET", book+"/progression", nil).Want(200)
		r.who.Do("GET", book+"/progress", nil).Want(200)
		r.who.Do("GET", book+"/read-history", nil).Want(200)
	}
}

// A client that returns a time in milliseconds or less means the same time.
func TestClockOfMilliseconds(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	r := newReader(t, s)
	book := "/api/v1/books/" + r.book.String()
	const locator = `"locator":{"href":"a","locations":{"totalProgression":0.5}}`
	r.who.Do("PUT", book+"/progression", "{"+locator+"}").Want(204)
	s.DB.Exec(t, "update reading_session set started_at = '2024-05-01 10:00:00.123456', ended_at = '2024-05-01 10:00:00.123456', recorded_at = '2024-05-01 10:00:00.123456'")
	s.DB.Exec(t, "update progress set updated_at = '2024-05-01 10:00:00.123456'")
	for modified, want := range map[string]int{"2024-05-01T10:00:00.123Z": 204, "2024-05-01T10:00:00.122Z": 409} {
		r.who.Do("PUT", book+"/progression", `{"device":{"id":"d"},`+locator+`,"modified":"`+modified+`"}`).Want(want)
		if m := r.who.Do("GET", book+"/progression", nil).Want(200).Map(); m["modified"] != "2024-05-01T10:00:00.123456Z" {
			t.Errorf("the place is of %v", m["modified"])
		}
	}
	before := time.Now()
	r.who.Do("PUT", book+"/progression", "{"+locator+"}").Want(204)
	m := r.who.Do("GET", book+"/progression", nil).Want(200).Map()
	if at, err := time.Parse(time.RFC3339Nano, m["modified"].(string)); err != nil || at.Before(before.Add(-time.Minute)) {
		t.Errorf("what is told without a time is of %v", m["modified"])
	}
}
