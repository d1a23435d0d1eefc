package gate

import (
	"fmt"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// WindowCode says why the windows of a Gate do not let a crossing start.
type WindowCode string

// Window codes. An open set of windows has none.
const (
	OutsideWindows WindowCode = "OutsideWindows"
	DenyWindow     WindowCode = "DenyWindow"
	InvalidWindow  WindowCode = "InvalidWindow"
)

const (
	// horizonYears is how far NextOpen and Until look ahead. It is also how far the
	// cron library looks, so that a leap day is always within it.
	horizonYears = 5
	// maxRounds bounds how often windows may take turns before the search is
	// given up as "never": enough for a daily deny over a daily allow for all
	// of the horizon. Each round moves on to another moment.
	maxRounds = 10_000
)

// WindowState is what the windows of a Gate say about one moment. They gate the
// start of a crossing, never a running one.
type WindowState struct {
	Open bool
	// Code is empty when open.
	Code WindowCode
	// Index is that of the window that decides: the open deny or the invalid
	// one. -1 when none does.
	Index int
	// Window is the one at Index, nil when none decides.
	Window *v1alpha1.Window
	// Reason is Code in upstream's words, to show; empty when open.
	Reason string
	// NextOpen is when all windows together next allow a start, in UTC. It is
	// nil when open already, when any window is invalid (waiting does not
	// help), and when it is never within five years.
	NextOpen *time.Time
	// Until is when what Code (or Open) says ends, in UTC: for a deny when that
	// deny ends, for an open set when it closes. Nil for ever, and for the
	// other codes. In a zone whose clock skips midnight, Until can be off on
	// the days around that night, Open is upstream's there too.
	Until *time.Time
}

// CheckWindow says what makes a window invalid: a duration that is not
// positive, an unknown time zone, a schedule that is not five-field cron.
func CheckWindow(w v1alpha1.Window) error {
	_, err := parse(w)
	return err
}

// CheckWindows judges the windows at now (hecate-facts, section 5): deny beats
// allow, without an allow window everything that is not denied is open, and
// evaluation stops at the first invalid window or open deny in list order.
func CheckWindows(ws []v1alpha1.Window, now time.Time) WindowState {
	all := make([]*schedule, len(ws))
	errs := make([]error, len(ws))
	valid := true
	for i, w := range ws {
		all[i], errs[i] = parse(w)
		valid = valid && errs[i] == nil
	}
	limit := now.AddDate(horizonYears, 0, 0)
	for _, s := range all {
		if s != nil && !s.every && s.opens(now.Add(-s.length), limit).IsZero() {
			s.silent = true
		}
	}

	code, i := judge(all, now)
	st := WindowState{Open: code == "", Code: code, Index: i}
	if i >= 0 {
		st.Window = &ws[i]
	}
	switch code {
	case InvalidWindow:
		st.Reason = fmt.Sprintf("windows[%d] is invalid: %v", i, errs[i])
	case DenyWindow:
		st.Reason = fmt.Sprintf("blocked by deny window %q", ws[i].Schedule)
		if end, ok := all[i].closes(now, limit); ok {
			st.Until = utc(end)
		}
	case OutsideWindows:
		st.Reason = "outside every promotion window"
	default:
		st.Until = closesAt(all, now, limit)
	}
	// An invalid window that stands behind an open deny is reached when the deny
	// ends: the set never opens again by waiting.
	if !st.Open && valid {
		st.NextOpen = nextOpen(all, now, limit)
	}
	return st
}

// judge is upstream's evaluation at t. A nil schedule is an invalid window.
func judge(all []*schedule, t time.Time) (WindowCode, int) {
	allows, open := 0, false
	for i, s := range all {
		switch {
		case s == nil:
			return InvalidWindow, i
		case s.deny:
			if s.openAt(t) {
				return DenyWindow, i
			}
		default:
			allows++
			open = open || s.openAt(t)
		}
	}
	if allows > 0 && !open {
		return OutsideWindows, -1
	}
	return "", -1
}

// nextOpen goes from one moment at which something can change to the next: a
// closed set can only open where the deny that closes it ends, or else where an
// allow window opens.
func nextOpen(all []*schedule, t, limit time.Time) *time.Time {
	for range maxRounds {
		code, i := judge(all, t)
		switch code {
		case "":
			return utc(t)
		case DenyWindow:
			end, ok := all[i].closes(t, limit)
			if !ok {
				return nil
			}
			t = end
		default:
			if t = firstOpening(all, false, t, limit); t.IsZero() {
				return nil
			}
		}
		if t.After(limit) {
			return nil
		}
	}
	return nil
}

// closesAt is when an open set closes: where a deny opens, or where the last of
// the open allow windows ends and no other has taken over.
func closesAt(all []*schedule, t, limit time.Time) *time.Time {
	for range maxRounds {
		next := firstOpening(all, true, t, limit)
		if end, ok := allowedUntil(all, t, limit); ok && (next.IsZero() || end.Before(next)) {
			next = end
		}
		if next.IsZero() {
			return nil
		}
		if code, _ := judge(all, next); code != "" {
			return utc(next)
		}
		if t = next; t.After(limit) {
			return nil
		}
	}
	return nil
}

// firstOpening is the earliest activation after t among the deny or the allow
// windows, zero when there is none up to limit.
func firstOpening(all []*schedule, deny bool, t, limit time.Time) time.Time {
	var first time.Time
	for _, s := range all {
		if s.deny != deny {
			continue
		}
		if a := s.opens(t, limit); !a.IsZero() && (first.IsZero() || a.Before(first)) {
			first = a
		}
	}
	return first
}

// allowedUntil is the latest end among the allow windows open at t; false when
// one stays open beyond limit and when there is none at all.
func allowedUntil(all []*schedule, t, limit time.Time) (time.Time, bool) {
	var last time.Time
	for _, s := range all {
		if s.deny || !s.openAt(t) {
			continue
		}
		end, ok := s.closes(t, limit)
		if !ok {
			return time.Time{}, false
		}
		if end.After(last) {
			last = end
		}
	}
	return last, !last.IsZero()
}

func utc(t time.Time) *time.Time {
	u := t.UTC()
	return &u
}
