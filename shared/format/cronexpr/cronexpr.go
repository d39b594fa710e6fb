// Package cronexpr parses cron expressions with five fields (minute, hour, day of month, month, day of week) or six (a
// second in front), and computes when they are next due, in any time zone of the IANA database, which is embedded.
//
// Clock changes are handled. A schedule with fixed hours fires once for each of its times: a skipped time fires right
// after the gap, a repeated time fires the first time only. A schedule that runs every hour keeps its rhythm through
// both.
package cronexpr

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // functions and small images have no zone files

	"github.com/adhocore/gronx"
)

// Schedule is a parsed expression in its time zone.
type Schedule struct {
	times     string // the normalised fields second, minute and hour
	days      string // and day of month, month and day of week
	zone      *time.Location
	everyHour bool
}

const maxLength = 200

// Parse parses an expression and the name of a time zone; "" is UTC. Errors name the invalid field. A schedule that is
// never due, such as 31 February, is an error too.
func Parse(expr, tz string) (Schedule, error) {
	if len(expr) > maxLength {
		return Schedule{}, fmt.Errorf("cron expression is longer than %d characters", maxLength)
	}
	fields := strings.Fields(strings.ToUpper(expr))
	switch len(fields) {
	case 5:
		fields = append([]string{"0"}, fields...)
	case 6:
	default:
		return Schedule{}, fmt.Errorf("cron expression has %d fields: want 5 (minute hour day month weekday) or 6 (second first)", len(fields))
	}
	for i, f := range fields {
		normal, err := grammar[i].normalise(f)
		if err != nil {
			return Schedule{}, fmt.Errorf("cron expression: field %s %q: %w", grammar[i].name, f, err)
		}
		fields[i] = normal
	}
	zone, err := zone(tz)
	if err != nil {
		return Schedule{}, err
	}
	s := Schedule{times: strings.Join(fields[:3], " "), days: strings.Join(fields[3:], " "), zone: zone, everyHour: fields[2] == "*"}
	if _, ok := s.nextWall(time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return Schedule{}, errors.New("cron expression: fields day and month: no such day exists in the next years")
	}
	return s, nil
}

func zone(tz string) (*time.Location, error) {
	if tz == "" {
		return time.UTC, nil
	}
	// "Local" would mean another zone on each machine.
	if z, err := time.LoadLocation(tz); err == nil && tz != "Local" {
		return z, nil
	}
	return nil, fmt.Errorf("time zone %q is not known: want a name such as UTC or Europe/Paris", tz)
}

// Next returns the first due time after the given one, in the schedule's zone and to the second. It returns the zero
// time for a zero Schedule, and if there is none in the computable years.
func (s Schedule) Next(after time.Time) time.Time {
	if s.zone == nil {
		return time.Time{}
	}
	t := after.In(s.zone).Truncate(time.Second)
	from := wall(t) // find wall clock times after this one
	for {
		start, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// After the end of a zone's table (in Europe from 2038 on) the time package ends leap years a day early. No
			// clock changes on that day.
			end = t.Add(24 * time.Hour)
		}
		offset := offsetAt(t)
		if !s.everyHour && !start.IsZero() {
			// Where clocks went back, times until here have already occurred.
			repeated := wall(start).Add(time.Duration(offsetAt(start.Add(-1))-offset) * time.Second)
			if from.Before(repeated) {
				from = repeated.Add(-time.Second)
			}
		}
		due, ok := s.nextWall(from)
		if !ok {
			return time.Time{}
		}
		at := due.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || at.Before(end) {
			return at.In(s.zone)
		}
		// Due only after the clock change: continue there.
		skipped := wall(end) // the first wall clock time after the change
		if !s.everyHour && due.Before(skipped) {
			return end
		}
		t, from = end, skipped.Add(-time.Second)
	}
}

// searched is the number of days that are searched for the next one. 29 February falls on a given weekday every 28
// years, and once after 40, around a year such as 2100 that is no leap year.
const searched = 41 * 366

// nextWall returns the next matching wall clock time after from, both written as UTC, where no clock changes. It finds
// the day first: the library searches all fields at once, which takes hours for a rare day.
func (s Schedule) nextWall(from time.Time) (time.Time, bool) {
	days, err := gronx.Segments("0 0 0 " + s.days)
	if err != nil {
		return time.Time{}, false
	}
	g := gronx.New()
	day := from.Truncate(24 * time.Hour)
	for range searched {
		next := day.AddDate(0, 0, 1)
		g.C.SetRef(day)
		if due, err := g.SegmentsDue(days); err == nil && due {
			after := day.Add(-time.Second)
			if from.After(after) {
				after = from
			}
			at, err := gronx.NextTickAfter(s.times+" * * *", after, false)
			if err == nil && at.After(after) && at.Before(next) {
				return at, true
			}
		}
		day = next
	}
	return time.Time{}, false
}

// wall returns the wall clock time of t's zone, written as UTC.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

func offsetAt(t time.Time) int {
	_, offset := t.Zone()
	return offset
}
