package gate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// model is a window in a form from which its openness can be counted without
// the cron library: the values of each field, nil for any.
type model struct {
	minutes, hours, weekdays []int
	window                   v1alpha1.Window
	zone                     *time.Location
}

func (m model) fires(t time.Time) bool {
	l := t.In(m.zone)
	in := func(set []int, v int) bool { return set == nil || slices.Contains(set, v) }
	return in(m.minutes, l.Minute()) && in(m.hours, l.Hour()) && in(m.weekdays, int(l.Weekday()))
}

// timeline says, for each half minute from start, whether the window is open.
// It starts counting a duration earlier.
func (m model) timeline(start time.Time, n int) []bool {
	length := m.window.Duration.Duration
	out := make([]bool, n)
	var end time.Time // of what the latest activation opened
	for i := -int(length / half); i < n; i++ {
		t := start.Add(time.Duration(i) * half)
		if t.Second() == 0 && m.fires(t) {
			end = t.Add(length)
		}
		if i >= 0 {
			out[i] = t.Before(end)
		}
	}
	return out
}

const half = 30 * time.Second

func randomModel(r *rand.Rand) model {
	pick := func(from, n int) []int {
		set := make([]int, 0, n)
		for len(set) < n {
			if v := r.IntN(from); !slices.Contains(set, v) {
				set = append(set, v)
			}
		}
		return set
	}
	field := func(set []int) string {
		if set == nil {
			return "*"
		}
		var parts []string
		for _, v := range set {
			parts = append(parts, strconv.Itoa(v))
		}
		return strings.Join(parts, ",")
	}
	var m model
	lengths := []time.Duration{half, time.Minute, 90 * time.Second, 10 * time.Minute, time.Hour, 3 * time.Hour, 12 * time.Hour, 23 * time.Hour, 24 * time.Hour, 25 * time.Hour, 60 * time.Hour}
	if r.IntN(4) > 0 {
		m.minutes = pick(60, 1+r.IntN(4))
	}
	if r.IntN(4) > 0 {
		m.hours = pick(24, 1+r.IntN(6))
	}
	if r.IntN(2) > 0 {
		m.weekdays = pick(7, 1+r.IntN(5))
	}
	zones := []string{"", "Europe/Berlin", "America/New_York", "Asia/Kolkata"}
	m.window.TimeZone = zones[r.IntN(len(zones))]
	m.window.Schedule = fmt.Sprintf("%s %s * * %s", field(m.minutes), field(m.hours), field(m.weekdays))
	m.window.Duration = metav1.Duration{Duration: lengths[r.IntN(len(lengths))]}
	m.window.Deny = r.IntN(5) < 2
	zone, err := time.LoadLocation(m.window.TimeZone)
	if err != nil {
		panic(err)
	}
	m.zone = zone
	return m
}

// TestWindowsAgainstCounting compares Open, NextOpen and Until with what counting
// half minutes over some weeks says, for random sets of windows around the
// clock changes of their zones.
func TestWindowsAgainstCounting(t *testing.T) {
	starts := []time.Time{at("2026-03-01T00:00:00Z"), at("2026-03-22T00:00:00Z"), at("2026-10-18T00:00:00Z"), at("2026-07-01T00:00:00Z")}
	const weeks = 3
	n := int(weeks * 7 * 24 * time.Hour / half)
	rounds := 80
	if testing.Short() {
		rounds = 20
	}
	r := rand.New(rand.NewPCG(20260801, 5))
	compared := map[string]int{}
	for range rounds {
		start := starts[r.IntN(len(starts))]
		var ws []v1alpha1.Window
		allowed, denied := make([]bool, n), make([]bool, n)
		allows := 0
		for range 1 + r.IntN(4) {
			m := randomModel(r)
			ws = append(ws, m.window)
			into := denied
			if !m.window.Deny {
				into = allowed
				allows++
			}
			for i, open := range m.timeline(start, n) {
				into[i] = into[i] || open
			}
		}
		open := func(i int) bool { return !denied[i] && (allows == 0 || allowed[i]) }
		// change is when the set is next open or next closed, after i.
		change := func(i int, to bool) *time.Time {
			for j := i + 1; j < n; j++ {
				if open(j) == to {
					t := start.Add(time.Duration(j) * half)
					return &t
				}
			}
			return nil
		}
		for range 30 {
			i := r.IntN(n)
			if r.IntN(2) == 0 { // half of the time where something changes
				for i > 0 && i < n-1 && open(i) == open(i-1) {
					i++
				}
			}
			// What holds at a half minute holds until the next one.
			now := start.Add(time.Duration(i) * half)
			if r.IntN(2) == 0 {
				now = now.Add(time.Duration(r.Int64N(int64(half))))
			}
			st := CheckWindows(ws, now)
			if st.Open != open(i) {
				t.Fatalf("%s at %s: Open = %t, counted %t", describe(ws), now, st.Open, open(i))
			}
			got := st.NextOpen
			if st.Open {
				got = st.Until
			}
			want := change(i, !st.Open)
			end := start.Add(time.Duration(n) * half)
			switch {
			case want != nil:
				compared["within"]++
				if got == nil || !got.Equal(*want) {
					t.Fatalf("%s at %s: open %t, changes at %s, counted %s", describe(ws), now, st.Open, show(got), want)
				}
			case got != nil && got.Before(end):
				t.Fatalf("%s at %s: open %t, changes at %s, counted none before %s", describe(ws), now, st.Open, show(got), end)
			default:
				compared["beyond"]++
			}
		}
	}
	t.Logf("compared: %v", compared)
	if compared["within"] < 10*rounds {
		t.Errorf("only %d comparisons of a change: the random sets are too dull", compared["within"])
	}
}

// TestAfterIsTheLibrary holds that asking at the end of a minute does not change
// the library's answer, quirks around clock changes included.
func TestAfterIsTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(20260801, 6))
	for range 200 {
		m := randomModel(r)
		m.window.TimeZone = []string{"", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe"}[r.IntN(5)]
		s, err := parse(m.window)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			now := at("2026-01-01T00:00:00Z").Add(time.Duration(r.Int64N(int64(365 * 24 * time.Hour))))
			if r.IntN(2) == 0 {
				now = now.Truncate(time.Minute)
			}
			if got, want := s.after(now), s.cron.Next(now.In(s.zone)); !got.Equal(want) {
				t.Fatalf("%s after %s: %s, the library says %s", describe([]v1alpha1.Window{m.window}), now, got, want)
			}
		}
	}
}

func describe(ws []v1alpha1.Window) string {
	var parts []string
	for _, w := range ws {
		parts = append(parts, fmt.Sprintf("{%q for %s in %q deny %t}", w.Schedule, w.Duration.Duration, w.TimeZone, w.Deny))
	}
	return strings.Join(parts, " ")
}

// hard are sets that never open although their windows take turns.
var hard = map[string][]v1alpha1.Window{
	"minutes":  {allow("1-59/2 * * * *", "1s", ""), deny("0-58/2 * * * *", "61s", "")},
	"hours":    {allow("30 * * * *", "10m", "Europe/Berlin"), deny("25 * * * *", "20m", "Europe/Berlin")},
	"days":     {allow("0 9 * * *", "1h", "Europe/Berlin"), deny("0 8 * * *", "3h", "Europe/Berlin")},
	"for ever": {allow("* * * * *", "1m", "Europe/Berlin"), deny("* * * * *", "8760h", "Europe/Berlin")},
	"rare":     {allow("* * * * *", "1s", "Europe/Berlin"), deny("0 0 31 2,4,6,9,11 *", "1h", "Europe/Berlin"), deny("0-58/2 * * * *", "1m1s", "UTC"), deny("1-59/2 * * * *", "1s", "UTC")},
}

func BenchmarkCheckWindows(b *testing.B) {
	for name, ws := range hard {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				CheckWindows(ws, at("2026-12-01T00:00:00Z"))
			}
		})
	}
}

// TestSearchIsBounded also guards against a search that does not move on.
func TestSearchIsBounded(t *testing.T) {
	for name, ws := range hard {
		began := time.Now()
		st := CheckWindows(ws, at("2026-12-01T00:00:30Z"))
		if st.Open || st.NextOpen != nil {
			t.Errorf("%s: Open = %t, NextOpen = %s, want never", name, st.Open, show(st.NextOpen))
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}
