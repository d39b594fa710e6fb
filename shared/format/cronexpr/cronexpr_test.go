package cronexpr

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
)

func mustParse(t testing.TB, expr, tz string) Schedule {
	t.Helper()
	s, err := Parse(expr, tz)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNext(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expr, tz, after, want string
	}{
		{"0 0 * * *", "", "2026-11-21T10:00:00Z", "2026-11-22T00:00:00Z"},
		{"0 0 * * *", "", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"0 0 * * *", "Europe/Berlin", "2026-11-21T10:00:00Z", "2026-11-22T00:00:00+01:00"},
		{"*/15 * * * *", "", "2026-11-21T10:14:59Z", "2026-11-21T10:15:00Z"},
		{"0 30 * * * *", "", "2026-11-21T10:30:00Z", "2026-11-21T11:30:00Z"},
		{"*/10 * * * * *", "", "2026-11-21T10:30:01.5Z", "2026-11-21T10:30:10Z"},
		{"30 6 * * mon-fri", "", "2026-11-20T07:00:00Z", "2026-11-23T06:30:00Z"},
		{"0 0 1 jan,jul *", "", "2026-11-21T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"0 0 31 * *", "", "2026-11-21T00:00:00Z", "2026-12-31T00:00:00Z"},
		{"0 0 29 2 *", "", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 29 2 4", "", "2026-02-27T00:00:00Z", "2027-02-04T00:00:00Z"},
		{"1 1 * 2 4#5", "", "2026-03-29T00:59:59Z", "2052-02-29T01:01:00Z"},
		{"1 1 * 2 4#5", "Europe/Berlin", "2026-03-29T00:59:59Z", "2052-02-29T01:01:00+01:00"},
		{"1 1 * 2 4#5", "", "2080-03-01T00:00:00Z", "2120-02-29T01:01:00Z"},
		{"30 2 31 10 *", "Europe/Berlin", "2036-11-01T00:00:00Z", "2037-10-31T02:30:00+01:00"},
		{"0 12 26 10 *", "Europe/Berlin", "2037-10-24T00:00:00Z", "2037-10-26T12:00:00+01:00"},
		{"0 0 L * *", "", "2026-02-01T00:00:00Z", "2026-02-28T00:00:00Z"},
		{"0 0 * * 5L", "", "2026-11-01T00:00:00Z", "2026-11-27T00:00:00Z"},
		{"0 0 * * 1#2", "", "2026-11-01T00:00:00Z", "2026-11-09T00:00:00Z"},
		{"0 0 15W * *", "", "2026-11-01T00:00:00Z", "2026-11-16T00:00:00Z"},
		{"5/20 * * * *", "", "2026-11-21T10:26:00Z", "2026-11-21T10:45:00Z"},
		{"0 0 ? * 7", "", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"0 12 13 * 5", "", "2026-11-21T00:00:00Z", "2026-11-27T12:00:00Z"}, // either day, as cron has it
		{"  0   0  *  *  * ", "", "2026-11-21T10:00:00Z", "2026-11-22T00:00:00Z"},
	}
	for _, tt := range tests {
		got := mustParse(t, tt.expr, tt.tz).Next(at(t, tt.after))
		if want := at(t, tt.want); !got.Equal(want) {
			t.Errorf("%q in %q after %s: %s, want %s", tt.expr, tt.tz, tt.after, got, want)
		}
	}
	if got := (Schedule{}).Next(time.Now()); !got.IsZero() {
		t.Errorf("the zero schedule is due at %v", got)
	}
}

// TestNextWhenClocksChange lists all times at which a schedule is due around a
// change, as the zone's clock shows them.
func TestNextWhenClocksChange(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, expr, tz, from, to string
		want                     []string
	}{
		{"skipped time fires after the gap", "30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z",
			[]string{"28 02:30 +01", "29 03:00 +02", "30 02:30 +02"}},
		{"several skipped times fire once", "*/20 2 * * *", "Europe/Berlin", "2026-03-28T20:00:00Z", "2026-03-30T00:10:00Z",
			[]string{"29 03:00 +02", "30 02:00 +02"}},
		{"a skipped time beside one at the end of the gap", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T20:00:00Z", "2026-03-29T20:00:00Z",
			[]string{"29 03:00 +02"}},
		{"repeated time fires the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z",
			[]string{"24 02:30 +02", "25 02:30 +02", "26 02:30 +01"}},
		{"several repeated times fire once each", "*/30 1-3 * * *", "Europe/Berlin", "2026-10-24T20:00:00Z", "2026-10-25T20:00:00Z",
			[]string{"25 01:00 +02", "25 01:30 +02", "25 02:00 +02", "25 02:30 +02", "25 03:00 +01", "25 03:30 +01"}},
		{"every hour keeps its rhythm forwards", "0 * * * *", "America/New_York", "2026-03-08T05:30:00Z", "2026-03-08T09:00:00Z",
			[]string{"08 01:00 -05", "08 03:00 -04", "08 04:00 -04", "08 05:00 -04"}},
		{"every hour keeps its rhythm backwards", "30 * * * *", "America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T07:59:00Z",
			[]string{"01 00:30 -04", "01 01:30 -04", "01 01:30 -05", "01 02:30 -05"}},
		{"a change by half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-02T13:00:00Z", "2026-10-04T12:00:00Z",
			[]string{"03 02:15 +1030", "04 02:30 +11"}},
		{"midnight does not exist", "0 0 * * *", "Africa/Cairo", "2026-04-22T12:00:00Z", "2026-04-25T12:00:00Z",
			[]string{"23 00:00 +02", "24 01:00 +03", "25 00:00 +03"}},
		{"a day does not exist", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "2012-01-10T00:00:00Z",
			[]string{"31 00:00 +14"}},
		{"sunday only, on the day of the change", "45 1 * * 0", "Europe/London", "2026-10-24T00:00:00Z", "2026-11-01T12:00:00Z",
			[]string{"25 01:45 +01", "01 01:45 +00"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, tt.expr, tt.tz)
			var got []string
			end := at(t, tt.to)
			for next := s.Next(at(t, tt.from)); !next.After(end) && len(got) < 20; next = s.Next(next) {
				got = append(got, next.Format("02 15:04 ")+next.Format("Z07")+strings.TrimPrefix(next.Format("Z0700"), next.Format("Z07")))
			}
			for i := range got {
				got[i] = tidyOffset(got[i])
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("due at %q, want %q", got, tt.want)
			}
		})
	}
}

// tidyOffset writes an offset of whole hours with two digits, and UTC as +00.
func tidyOffset(s string) string {
	if head, ok := strings.CutSuffix(s, "Z"); ok {
		return head + "+00"
	}
	if head, ok := strings.CutSuffix(s, "00"); ok && len(s) == len("02 15:04 +0100") {
		return head
	}
	return s
}

// TestNextFromAnyMoment steps over two years of clock changes from random moments: the next time is after the moment,
// and no due time lies between them.
func TestNextFromAnyMoment(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 5))
	start := at(t, "2026-01-01T00:00:00Z")
	for _, tz := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "UTC", "Asia/Kathmandu"} {
		for _, expr := range []string{"30 2 * * *", "*/20 1-2 * * *", "0 * * * *", "15 0 * * 0", "0 0 1 * *"} {
			s := mustParse(t, expr, tz)
			for range 40 {
				after := start.Add(time.Duration(rnd.Int64N(int64(2 * 365 * 24 * time.Hour))))
				next := s.Next(after)
				if !next.After(after) || next.Sub(after) > 32*24*time.Hour {
					t.Fatalf("%q in %s after %s: %s", expr, tz, after, next)
				}
				between := after.Add(time.Duration(rnd.Int64N(int64(next.Sub(after)))))
				if got := s.Next(between); !got.Equal(next) {
					t.Fatalf("%q in %s: after %s comes %s, but after %s in between %s", expr, tz, after, next, between, got)
				}
			}
		}
	}
}

// TestNextAgainstEveryMinute compares Next with a check of every minute, which uses other code of the library.
func TestNextAgainstEveryMinute(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(8, 13))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	g := gronx.New()
	for range 20 {
		expr := strings.Join([]string{pick("*", "0", "*/7", "5-40/9", "3,59"), pick("*", "0", "23", "*/5", "7-9"),
			pick("*", "1", "31", "*/10", "L", "15W"), pick("*", "2", "11,12", "*/3"), pick("*", "0", "7", "1-5", "5#1", "1L")}, " ")
		s, err := Parse(expr, "")
		if err != nil {
			if strings.Contains(expr, " 31 2 ") {
				continue
			}
			t.Fatalf("%q: %v", expr, err)
		}
		minute := time.Date(2026, time.Month(1+rnd.IntN(12)), 1+rnd.IntN(28), rnd.IntN(24), rnd.IntN(60), 0, 0, time.UTC)
		next := s.Next(minute)
		for range 5_000 { // half a week
			minute = minute.Add(time.Minute)
			due, err := g.IsDue(s.times+" "+s.days, minute)
			if err != nil {
				t.Fatalf("%q: %v", expr, err)
			}
			if due != minute.Equal(next) || minute.After(next) {
				t.Fatalf("%q: at %s due is %v, next was %s", expr, minute, due, next)
			}
			if due {
				next = s.Next(minute)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ expr, tz, names string }{
		{"", "", "0 fields"},
		{"* * * *", "", "4 fields"},
		{"* * * * * * *", "", "7 fields"},
		{"@daily", "", "1 fields"},
		{"60 * * * *", "", "minute"},
		{"-1 * * * *", "", "minute"},
		{"+1 * * * *", "", "minute"},
		{"*/0 * * * *", "", "minute"},
		{"*/ * * * *", "", "minute"},
		{"*/90 * * * *", "", "minute"},
		{"1/2/3 * * * *", "", "minute"},
		{"1,,2 * * * *", "", "minute"},
		{"*,5 * * * *", "", "minute"},
		{"x * * * *", "", "minute"},
		{"? * * * *", "", "minute"},
		{"61 * * * * *", "", "second"},
		{"0 24 * * *", "", "hour"},
		{"0 5-3 * * *", "", "hour"},
		{"0 0 0 * *", "", "day of month"},
		{"0 0 32 * *", "", "day of month"},
		{"0 0 32W * *", "", "day of month"},
		{"0 0 LW * *", "", "day of month"},
		{"0 0 * 13 *", "", "month"},
		{"0 0 * foo *", "", "month"},
		{"0 0 * * 8", "", "day of week"},
		{"0 0 * * 2026", "", "day of week"},
		{"0 0 * * 5#6", "", "day of week"},
		{"0 0 * * L", "", "day of week"},
		{"0 0 * * noday", "", "day of week"},
		{"0 0 31 2 *", "", "day and month"},
		{"0 0 31 4,6,9,11 *", "", "day and month"},
		{"0 0 * * *", "Mars/Olympus", "Mars/Olympus"},
		{"0 0 * * *", "Local", "Local"},
		{"0 0 * * *", "../../etc/passwd", "time zone"},
		{strings.Repeat("1,", 200) + "1 * * * *", "", "longer"},
	}
	for _, tt := range tests {
		_, err := Parse(tt.expr, tt.tz)
		if err == nil {
			t.Errorf("%q: accepted", tt.expr)
			continue
		}
		if !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%q: %v does not name %q", tt.expr, err, tt.names)
		}
	}
}

// FuzzParse asserts that whatever is accepted can be used.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0 0 * * *", "*/5 1-3 1,15 jan-mar mon", "0 30 * * * *", "0 0 L * 5#2", "0 0 15W * ?", "7/3 * * * 6-7/2"} {
		f.Add(seed, "Europe/Berlin")
	}
	after := time.Date(2026, 3, 29, 0, 59, 59, 0, time.UTC)
	f.Fuzz(func(t *testing.T, expr, tz string) {
		s, err := Parse(expr, tz)
		if err != nil {
			return
		}
		next := s.Next(after)
		if !next.After(after) {
			t.Fatalf("%q in %q: next is %s", expr, tz, next)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	s := mustParse(b, "30 2 * * 1-5", "Europe/Berlin")
	after := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for b.Loop() {
		s.Next(after)
	}
}
