package gate

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

func allow(schedule, length, zone string) v1alpha1.Window {
	d, err := time.ParseDuration(length)
	if err != nil {
		panic(err)
	}
	return v1alpha1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: d}, TimeZone: zone}
}

func deny(schedule, length, zone string) v1alpha1.Window {
	w := allow(schedule, length, zone)
	w.Deny = true
	return w
}

// at reads RFC 3339; it panics so that it can stand in tables.
func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

// show is RFC 3339 in UTC, "" for nil.
func show(t *time.Time) string {
	if t == nil {
		return ""
	}
	if t.Location() != time.UTC {
		return t.String() + " is not UTC"
	}
	return t.Format(time.RFC3339Nano)
}

func TestCheckWindow(t *testing.T) {
	tests := []struct {
		window v1alpha1.Window
		err    string // "" when valid
	}{
		{allow("0 9 * * 1-5", "1h", ""), ""},
		{allow("*/5 9-17 1,15 jan-MAR mon", "1ns", "Europe/Berlin"), ""},
		{allow("@daily", "1h", "UTC"), ""},
		{allow("@every 90m", "1h", ""), ""},
		{allow("TZ=America/New_York 0 9 * * *", "1h", "Europe/Berlin"), ""},
		{allow("CRON_TZ=Asia/Tokyo @weekly", "1h", ""), ""},
		{allow("0 0 31 2 *", "1h", ""), ""},
		{allow(", * * * *", "1h", ""), ""},
		{allow("0 9 * * *", "1h", "Local"), ""},
		{deny("0 9 * * *", "1h", ""), ""},
		{allow("0 9 * * *", "0s", ""), "duration 0s is not positive"},
		{allow("0 9 * * *", "-1h", ""), "duration -1h0m0s is not positive"},
		{allow("0 9 * * *", "1h", "Mars/Olympus"), `timeZone "Mars/Olympus" is unknown, want an IANA name such as Europe/Berlin`},
		{allow("0 9 * * *", "1h", "+02:00"), `timeZone "+02:00" is unknown`},
		{allow("0 0 9 * * *", "1h", ""), `schedule "0 0 9 * * *": expected exactly 5 fields, found 6`},
		{allow("0 9 * *", "1h", ""), "expected exactly 5 fields, found 4"},
		{allow("", "1h", ""), "empty spec string"},
		{allow("60 9 * * *", "1h", ""), "above maximum"},
		{allow("0 9 * * 7", "1h", ""), "above maximum"},
		{allow("@fortnightly", "1h", ""), "unrecognized descriptor"},
		{allow("@every soon", "1h", ""), "failed to parse duration"},
		{allow("TZ=UTC", "1h", ""), `schedule "TZ=UTC" has no fields after its time zone`},
		{allow("CRON_TZ=UTC", "1h", ""), "has no fields after its time zone"},
		{allow("TZ=Mars/Olympus 0 9 * * *", "1h", ""), "bad location"},
		{allow("TZ= ", "1h", ""), "expected exactly 5 fields, found 0"},
	}
	for _, tt := range tests {
		err := CheckWindow(tt.window)
		if (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%q for %s in %q: error %v, want %q", tt.window.Schedule, tt.window.Duration.Duration, tt.window.TimeZone, err, tt.err)
		}
	}
}

func TestCheckWindows(t *testing.T) {
	type windows = []v1alpha1.Window
	bad := allow("0 0 9 * * *", "1h", "")
	tests := []struct {
		name    string
		windows windows
		now     string
		code    WindowCode // "" when open
		index   int
		next    string
		until   string
	}{
		{"none", nil, "2026-12-01T00:00:00Z", "", -1, "", ""},

		// One allow window: open from the activation, closed at its end.
		{"just before", windows{allow("0 9 * * *", "2h", "")}, "2026-12-01T08:59:59.999999999Z", OutsideWindows, -1, "2026-12-01T09:00:00Z", ""},
		{"at the activation", windows{allow("0 9 * * *", "2h", "")}, "2026-12-01T09:00:00Z", "", -1, "", "2026-12-01T11:00:00Z"},
		{"last moment", windows{allow("0 9 * * *", "2h", "")}, "2026-12-01T10:59:59.999999999Z", "", -1, "", "2026-12-01T11:00:00Z"},
		{"at the end", windows{allow("0 9 * * *", "2h", "")}, "2026-12-01T11:00:00Z", OutsideWindows, -1, "2026-12-02T09:00:00Z", ""},
		{"shorter than a second, inside", windows{allow("0 9 * * *", "500ms", "")}, "2026-12-01T09:00:00.499Z", "", -1, "", "2026-12-01T09:00:00.5Z"},
		{"shorter than a second, after", windows{allow("0 9 * * *", "500ms", "")}, "2026-12-01T09:00:00.5Z", OutsideWindows, -1, "2026-12-02T09:00:00Z", ""},
		{"over a weekend", windows{allow("0 9 * * 1-5", "8h", "")}, "2026-12-04T17:00:00Z", OutsideWindows, -1, "2026-12-07T09:00:00Z", ""},
		{"descriptor", windows{allow("@weekly", "1h", "")}, "2026-12-04T17:00:00Z", OutsideWindows, -1, "2026-12-06T00:00:00Z", ""},
		{"day of month or day of week", windows{allow("0 0 13 * 5", "1h", "")}, "2026-12-01T00:00:00Z", OutsideWindows, -1, "2026-12-04T00:00:00Z", ""},

		// Activations within the duration extend a window.
		{"minutes join", windows{allow("* 9 * * *", "1m", "")}, "2026-12-01T09:30:30Z", "", -1, "", "2026-12-01T10:00:00Z"},
		{"minutes do not join", windows{allow("* 9 * * *", "59s", "")}, "2026-12-01T09:30:30Z", "", -1, "", "2026-12-01T09:30:59Z"},
		{"gap of a minute", windows{allow("* 9 * * *", "59s", "")}, "2026-12-01T09:30:59Z", OutsideWindows, -1, "2026-12-01T09:31:00Z", ""},
		{"working days join", windows{allow("0 0 * * 1-5", "24h", "")}, "2026-12-01T09:30:00Z", "", -1, "", "2026-12-05T00:00:00Z"},
		{"for ever", windows{allow("* * * * *", "1m", "")}, "2026-12-01T09:30:30Z", "", -1, "", ""},
		{"eleven months by the minute", windows{allow("* * * 1-11 *", "1m", "")}, "2026-01-01T00:00:00Z", "", -1, "", "2026-12-01T00:00:00Z"},
		{"two windows take turns", windows{allow("0 8 * * *", "2h", ""), allow("30 9 * * *", "2h", ""), allow("30 11 * * *", "1h", "")}, "2026-12-01T08:00:00Z", "", -1, "", "2026-12-01T12:30:00Z"},
		{"a long one beside one that comes and goes", windows{allow("0-58/2 * * * *", "1m", ""), allow("0 0 1 12 *", "720h", "")}, "2026-12-01T08:00:00Z", "", -1, "", "2026-12-31T00:01:00Z"},
		{"two halves of a day, for ever", windows{allow("0 0 * * *", "12h", ""), allow("0 12 * * *", "12h", "")}, "2026-12-01T08:00:00Z", "", -1, "", ""},

		// Deny windows.
		{"only a deny, before", windows{deny("0 9 * * *", "2h", "")}, "2026-12-01T08:00:00Z", "", -1, "", "2026-12-01T09:00:00Z"},
		{"only a deny, inside", windows{deny("0 9 * * *", "2h", "")}, "2026-12-01T09:00:00Z", DenyWindow, 0, "2026-12-01T11:00:00Z", "2026-12-01T11:00:00Z"},
		{"only a deny, at the end", windows{deny("0 9 * * *", "2h", "")}, "2026-12-01T11:00:00Z", "", -1, "", "2026-12-02T09:00:00Z"},
		{"deny beats allow", windows{allow("0 8 * * *", "8h", ""), deny("0 9 * * *", "2h", "")}, "2026-12-01T10:00:00Z", DenyWindow, 1, "2026-12-01T11:00:00Z", "2026-12-01T11:00:00Z"},
		{"deny before allow in the list", windows{deny("0 9 * * *", "2h", ""), allow("0 8 * * *", "8h", "")}, "2026-12-01T10:00:00Z", DenyWindow, 0, "2026-12-01T11:00:00Z", "2026-12-01T11:00:00Z"},
		{"open until the deny", windows{allow("0 8 * * *", "8h", ""), deny("0 9 * * *", "2h", "")}, "2026-12-01T08:30:00Z", "", -1, "", "2026-12-01T09:00:00Z"},
		{"deny outlasts the allow", windows{allow("0 8 * * *", "2h", ""), deny("0 9 * * *", "4h", "")}, "2026-12-01T09:30:00Z", DenyWindow, 1, "2026-12-02T08:00:00Z", "2026-12-01T13:00:00Z"},
		{"deny over the next opening", windows{allow("0 8 * * *", "2h", ""), deny("0 0 2 12 *", "9h", "")}, "2026-12-01T11:00:00Z", OutsideWindows, -1, "2026-12-02T09:00:00Z", ""},
		{"chain of denies", windows{deny("0 9 * * *", "2h", ""), deny("0 10 * * *", "2h", ""), deny("0 12 * * *", "1h", "")}, "2026-12-01T09:00:00Z", DenyWindow, 0, "2026-12-01T13:00:00Z", "2026-12-01T11:00:00Z"},
		{"the first open deny decides", windows{deny("0 0 1 1 *", "1h", ""), deny("0 10 * * *", "2h", ""), deny("0 9 * * *", "9h", "")}, "2026-12-01T10:00:00Z", DenyWindow, 1, "2026-12-01T18:00:00Z", "2026-12-01T12:00:00Z"},
		{"deny for ever", windows{deny("* * * * *", "1m", ""), allow("* * * * *", "1m", "")}, "2026-12-01T10:00:00Z", DenyWindow, 0, "", ""},
		{"denies for ever by turns", windows{deny("0 0 * * *", "12h", ""), deny("0 12 * * *", "12h", "")}, "2026-12-01T10:00:00Z", DenyWindow, 0, "", "2026-12-01T12:00:00Z"},
		{"deny over every opening", windows{allow("0 9 * * *", "1h", ""), deny("0 8 * * *", "3h", "")}, "2026-12-01T00:00:00Z", OutsideWindows, -1, "", ""},
		{"December by the minute", windows{deny("* * * 12 *", "1m", "Europe/Berlin")}, "2026-12-01T10:00:00Z", DenyWindow, 0, "2026-12-31T23:00:00Z", "2026-12-31T23:00:00Z"},

		// Schedules that seldom or never fire.
		{"leap day", windows{allow("0 0 29 2 *", "1h", "")}, "2026-12-01T00:00:00Z", OutsideWindows, -1, "2028-02-29T00:00:00Z", ""},
		{"leap day just missed", windows{allow("0 0 29 2 *", "1h", "")}, "2028-02-29T01:00:00Z", OutsideWindows, -1, "2032-02-29T00:00:00Z", ""},
		{"never", windows{allow("0 0 31 2 *", "1h", "")}, "2026-12-01T00:00:00Z", OutsideWindows, -1, "", ""},
		{"deny never", windows{deny("0 0 31 2 *", "1h", "")}, "2026-12-01T00:00:00Z", "", -1, "", ""},
		{"no minute", windows{allow(", * * * *", "1h", "")}, "2026-12-01T00:00:00Z", OutsideWindows, -1, "", ""},
		{"no month", windows{allow("0 0 * , *", "1h", "")}, "2026-12-01T00:00:00Z", OutsideWindows, -1, "", ""},
		{"deny for longer than can be looked ahead", windows{deny("0 0 1 1 *", "87600h", "")}, "2026-12-01T00:00:00Z", DenyWindow, 0, "", ""},

		// @every counts from the moment of asking.
		{"every, as long", windows{allow("@every 1h", "1h", "")}, "2026-12-01T00:17:23Z", "", -1, "", ""},
		{"every, shorter", windows{allow("@every 1h", "59m", "")}, "2026-12-01T00:17:23Z", OutsideWindows, -1, "", ""},
		{"deny every", windows{deny("@every 1h", "2h", "")}, "2026-12-01T00:17:23Z", DenyWindow, 0, "", ""},
		{"every beside another", windows{allow("@every 2h", "1h", ""), allow("0 9 * * *", "1h", "")}, "2026-12-01T00:17:23Z", OutsideWindows, -1, "2026-12-01T09:00:00Z", ""},

		// Invalid windows.
		{"invalid", windows{allow("0 9 * * *", "2h", ""), bad}, "2026-12-01T10:00:00Z", InvalidWindow, 1, "", ""},
		{"the first of two invalid", windows{bad, bad}, "2026-12-01T10:00:00Z", InvalidWindow, 0, "", ""},
		{"invalid before an open deny", windows{bad, deny("0 9 * * *", "2h", "")}, "2026-12-01T10:00:00Z", InvalidWindow, 0, "", ""},
		{"an open deny before invalid", windows{deny("0 9 * * *", "2h", ""), bad}, "2026-12-01T10:00:00Z", DenyWindow, 0, "", "2026-12-01T11:00:00Z"},
		{"a closed deny before invalid", windows{deny("0 9 * * *", "2h", ""), bad}, "2026-12-01T08:00:00Z", InvalidWindow, 1, "", ""},

		// Zones.
		{"in its zone", windows{allow("0 9 * * *", "1h", "Asia/Tokyo")}, "2026-12-01T00:30:00Z", "", -1, "", "2026-12-01T01:00:00Z"},
		{"a prefix beats the zone", windows{allow("TZ=Asia/Tokyo 0 9 * * *", "1h", "Europe/Berlin")}, "2026-12-01T00:30:00Z", "", -1, "", "2026-12-01T01:00:00Z"},
		{"CRON_TZ", windows{allow("CRON_TZ=Asia/Tokyo @daily", "1h", "Europe/Berlin")}, "2026-12-01T16:00:00Z", OutsideWindows, -1, "2026-12-02T15:00:00Z", ""},
		{"Local is UTC", windows{allow("TZ=Local 0 9 * * *", "1h", "Local")}, "2026-12-01T09:30:00Z", "", -1, "", "2026-12-01T10:00:00Z"},
		{"now in another zone", windows{allow("0 9 * * *", "1h", "")}, "2026-12-01T04:30:00-05:00", "", -1, "", "2026-12-01T10:00:00Z"},

		// Berlin springs forward on 2026-03-29, 02:00 -> 03:00 (01:00Z), and falls
		// back on 2026-10-25, 03:00 -> 02:00 (01:00Z).
		{"02:30 does not exist", windows{allow("30 2 * * *", "1h", "Europe/Berlin")}, "2026-03-28T03:00:00Z", OutsideWindows, -1, "2026-03-30T00:30:00Z", ""},
		{"closed on the day of the jump", windows{allow("30 2 * * *", "1h", "Europe/Berlin")}, "2026-03-29T01:30:00Z", OutsideWindows, -1, "2026-03-30T00:30:00Z", ""},
		{"02:30 comes twice, first", windows{allow("30 2 * * *", "30m", "Europe/Berlin")}, "2026-10-25T00:30:00Z", "", -1, "", "2026-10-25T01:00:00Z"},
		{"02:30 comes twice, between", windows{allow("30 2 * * *", "30m", "Europe/Berlin")}, "2026-10-25T01:00:00Z", OutsideWindows, -1, "2026-10-25T01:30:00Z", ""},
		{"02:30 comes twice, second", windows{allow("30 2 * * *", "30m", "Europe/Berlin")}, "2026-10-25T01:45:00Z", "", -1, "", "2026-10-25T02:00:00Z"},
		{"02:30 comes twice and joins", windows{allow("30 2 * * *", "1h", "Europe/Berlin")}, "2026-10-25T00:30:00Z", "", -1, "", "2026-10-25T02:30:00Z"},
		{"elapsed time over the jump", windows{allow("0 1 * * *", "3h", "Europe/Berlin")}, "2026-03-29T00:00:00Z", "", -1, "", "2026-03-29T03:00:00Z"},
		{"elapsed time over the fall", windows{allow("0 1 * * *", "3h", "Europe/Berlin")}, "2026-10-24T23:00:00Z", "", -1, "", "2026-10-25T02:00:00Z"},
		{"24h leave an hour in autumn", windows{allow("0 0 * * *", "24h", "Europe/Berlin")}, "2026-10-24T12:00:00Z", "", -1, "", "2026-10-25T22:00:00Z"},
		{"minutes join over the jump", windows{deny("* 0-5 * * *", "1m", "Europe/Berlin")}, "2026-03-29T00:00:00Z", DenyWindow, 0, "2026-03-29T04:00:00Z", "2026-03-29T04:00:00Z"},
		{"minutes join over the fall", windows{deny("* 0-5 * * *", "1m", "Europe/Berlin")}, "2026-10-25T00:00:00Z", DenyWindow, 0, "2026-10-25T05:00:00Z", "2026-10-25T05:00:00Z"},
		{"days join over both changes", windows{deny("0 0 * 2-11 *", "25h", "Europe/Berlin")}, "2026-02-01T00:00:00Z", DenyWindow, 0, "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"},

		// New York: 2026-03-08, 02:00 -> 03:00 (07:00Z); 2026-11-01, 02:00 -> 01:00 (06:00Z).
		{"NY: 02:30 does not exist", windows{allow("30 2 * * *", "1h", "America/New_York")}, "2026-03-08T00:00:00Z", OutsideWindows, -1, "2026-03-09T06:30:00Z", ""},
		{"NY: 01:30 comes twice", windows{allow("30 1 * * *", "10m", "America/New_York")}, "2026-11-01T05:40:00Z", OutsideWindows, -1, "2026-11-01T06:30:00Z", ""},
		{"NY: elapsed time over the jump", windows{deny("0 0 * * 0", "6h", "America/New_York")}, "2026-03-08T05:00:00Z", DenyWindow, 0, "2026-03-08T11:00:00Z", "2026-03-08T11:00:00Z"},
		{"NY: elapsed time over the fall", windows{deny("0 0 * * 0", "6h", "America/New_York")}, "2026-11-01T04:00:00Z", DenyWindow, 0, "2026-11-01T10:00:00Z", "2026-11-01T10:00:00Z"},

		// Cairo skips midnight on Friday 2026-04-24 (22:00Z on the 23rd): a search
		// from Thursday loses the Friday, one from Friday does not.
		{"Cairo: the day whose midnight is skipped", windows{allow("0 9 * * 5", "1h", "Africa/Cairo")}, "2026-04-23T10:00:00Z", OutsideWindows, -1, "2026-04-24T06:00:00Z", ""},
		{"Cairo: open on it", windows{allow("0 9 * * 5", "1h", "Africa/Cairo")}, "2026-04-24T06:30:00Z", "", -1, "", "2026-04-24T07:00:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := CheckWindows(tt.windows, at(tt.now))
			if st.Open != (tt.code == "") || st.Code != tt.code || st.Index != tt.index {
				t.Errorf("Open = %t, Code = %q, Index = %d, want %q, %d", st.Open, st.Code, st.Index, tt.code, tt.index)
			}
			if show(st.NextOpen) != tt.next {
				t.Errorf("NextOpen = %q, want %q", show(st.NextOpen), tt.next)
			}
			if show(st.Until) != tt.until {
				t.Errorf("Until = %q, want %q", show(st.Until), tt.until)
			}
			if tt.index >= 0 && st.Window != &tt.windows[tt.index] || tt.index < 0 && st.Window != nil {
				t.Errorf("Window = %+v, want the one at %d", st.Window, tt.index)
			}
			if st.NextOpen != nil && !CheckWindows(tt.windows, *st.NextOpen).Open {
				t.Errorf("not open at NextOpen")
			}
		})
	}
}

func TestWindowReasons(t *testing.T) {
	now := at("2026-12-01T10:00:00Z")
	for _, tt := range []struct {
		windows []v1alpha1.Window
		want    string
	}{
		{nil, ""},
		{[]v1alpha1.Window{allow("0 9 * * *", "10m", "")}, "outside every promotion window"},
		{[]v1alpha1.Window{deny("0 9 * * 2", "10h", "")}, `blocked by deny window "0 9 * * 2"`},
		{[]v1alpha1.Window{allow("* * * * *", "1h", ""), allow("0 9 * * *", "0s", "")}, "windows[1] is invalid: duration 0s is not positive"},
	} {
		if got := CheckWindows(tt.windows, now).Reason; got != tt.want {
			t.Errorf("Reason = %q, want %q", got, tt.want)
		}
	}
}
