package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// schedule is a window that was found valid: it opens at each activation and
// stays open for length, in elapsed time.
type schedule struct {
	cron   cron.Schedule
	length time.Duration
	deny   bool
	// zone is the one in which the schedule counts: that of its TZ= prefix,
	// else the window's.
	zone *time.Location
	// every marks @every: its activations follow the moment of asking, so it
	// is either open at all times or at none.
	every bool
	// silent marks a schedule that never fires while it matters, such as one
	// without any minute (a field of commas only parses). Asking the library
	// again and again would have it look through years.
	silent bool
	// solid is whether the window stays open from the first to the last
	// activation of every day on which it opens; lastMinute is the last one's
	// minute of the day.
	solid      bool
	lastMinute int
}

// parse says what is wrong with a window that upstream would call invalid.
func parse(w v1alpha1.Window) (*schedule, error) {
	if w.Duration.Duration <= 0 {
		return nil, fmt.Errorf("duration %s is not positive", w.Duration.Duration)
	}
	zone, err := loadZone(w.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("timeZone %q is unknown, want an IANA name such as Europe/Berlin", w.TimeZone)
	}
	// The library indexes past a prefix that nothing follows.
	if hasZonePrefix(w.Schedule) && !strings.Contains(w.Schedule, " ") {
		return nil, fmt.Errorf("schedule %q has no fields after its time zone", w.Schedule)
	}
	parsed, err := cron.ParseStandard(w.Schedule)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", w.Schedule, err)
	}
	s := &schedule{cron: parsed, length: w.Duration.Duration, deny: w.Deny, zone: zone}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		s.every = true
		return s, nil
	}
	if spec.Location != time.Local {
		s.zone = spec.Location
	}
	s.readDay(spec)
	return s, nil
}

// loadZone is UTC for "", and for "Local" too: what is local is decided where
// the controller runs, and its image runs in UTC.
func loadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return time.UTC, nil
	}
	return time.LoadLocation(name)
}

func hasZonePrefix(spec string) bool {
	return strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ=")
}

// readDay sets solid, lastMinute and silent from the schedule's bit sets.
func (s *schedule) readDay(spec *cron.SpecSchedule) {
	previous := -1
	s.solid = true
	for m := range 24 * 60 {
		if spec.Hour&(1<<(m/60)) == 0 || spec.Minute&(1<<(m%60)) == 0 {
			continue
		}
		if previous >= 0 && time.Duration(m-previous)*time.Minute > s.length {
			s.solid = false
		}
		previous = m
	}
	s.lastMinute = previous
	const months = (1<<12 - 1) << 1
	s.silent = previous < 0 || spec.Month&months == 0
}

// after is the library's first activation strictly after t, zero when it finds
// none within five years.
//
// Cron fires on whole minutes, so the answer is one for all of a minute. It is
// asked for at the minute's last second: the library counts up by seconds.
func (s *schedule) after(t time.Time) time.Time {
	if s.silent {
		return time.Time{}
	}
	if !s.every {
		t = t.Truncate(time.Minute).Add(59 * time.Second)
	}
	return s.cron.Next(t.In(s.zone))
}

// openAt is upstream's test: the first activation strictly after t-length is
// not after t.
func (s *schedule) openAt(t time.Time) bool {
	a := s.after(t.Add(-s.length))
	return !a.IsZero() && !a.After(t)
}

// opens is the first activation strictly after t, zero when there is none up to
// limit.
//
// A search that starts before a clock change can overlook an activation that
// comes soon after (the library goes day by day and hour by hour: where midnight
// is skipped it may lose a day). Upstream asks again at every moment and does
// find it, so the search is started once more at each change on the way.
func (s *schedule) opens(t, limit time.Time) time.Time {
	if s.every {
		return time.Time{}
	}
	a := s.after(t)
	for from := t; ; {
		_, change := from.In(s.zone).ZoneBounds()
		if change.IsZero() || change.After(limit) || (!a.IsZero() && !change.Before(a)) {
			break
		}
		if b := s.after(change.Add(-time.Nanosecond)); !b.IsZero() && (a.IsZero() || b.Before(a)) {
			a = b
		}
		from = change
	}
	return a
}

// closes is when a window that is open at t is next not open; false when it
// stays open beyond limit. Activations that follow within length extend it.
//
// Cost: a solid day is passed in one step, so that at most one step for each day
// until limit and one for each minute of the days of a clock change (two a year)
// is taken. A window that is not solid closes within its first whole day.
func (s *schedule) closes(t, limit time.Time) (time.Time, bool) {
	if s.every {
		return time.Time{}, false
	}
	a := s.after(t.Add(-s.length))
	for !a.After(limit) {
		last, from := s.restOfDay(a)
		a = last
		next := s.after(from)
		if next.IsZero() || next.Sub(a) > s.length {
			return a.Add(s.length), true
		}
		a = next
	}
	return time.Time{}, false
}

// restOfDay is the last activation on a's day, where all between a and it follow
// without a gap, and a moment from which to search for the next one: the end of
// the day, since nothing fires before. Where this cannot be told without counting
// (the day is not solid, or has not 24 hours), both are a.
func (s *schedule) restOfDay(a time.Time) (last, from time.Time) {
	if !s.solid {
		return a, a
	}
	y, m, d := a.In(s.zone).Date()
	start, end := time.Date(y, m, d, 0, 0, 0, 0, s.zone), time.Date(y, m, d+1, 0, 0, 0, 0, s.zone)
	if end.Sub(start) != 24*time.Hour {
		return a, a
	}
	return start.Add(time.Duration(s.lastMinute) * time.Minute), end.Add(-time.Minute)
}
