package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// pseudoTerminal returns both ends of a terminal.
func pseudoTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	var locked, number uint32
	control := func(request uintptr, value *uint32) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, keyboard.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Skipf("no pseudo-terminals here: %v", errno)
		}
	}
	control(syscall.TIOCSPTLCK, &locked)
	control(syscall.TIOCGPTN, &number)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}

// TestConfirmOnTerminal holds what a person's typing leads to.
func TestConfirmOnTerminal(t *testing.T) {
	const endOfInput = "\x04"
	for _, c := range []struct {
		name      string
		plans     []gatePlan
		typed     string
		args      []string
		code      int
		says      []string
		confirmed string
	}{
		{"the name", []gatePlan{"production"}, "production\n", nil, 0,
			[]string{"Promote app-1 to production\n\nGate production\n  warning: window\n", "for alice@example.com through promote_bundle", "type production: ", "Confirmed."}, "Promote app-1 to production"},
		{"a wrong name", []gatePlan{"production"}, "staging\n", nil, 5, []string{`not "production"`, "still waits"}, ""},
		{"no name", []gatePlan{"production"}, "\n", nil, 5, []string{"still waits"}, ""},
		{"yes", []gatePlan{"production"}, "yes\n", nil, 5, []string{"still waits"}, ""},
		{"the end", []gatePlan{"production"}, endOfInput, nil, 5, []string{"nothing was confirmed"}, ""},
		{"the second of two", []gatePlan{"production", "staging"}, "2\nstaging\n", nil, 0, []string{"Which one? [1-2]"}, "Promote app-1 to staging"},
		{"the other's name", []gatePlan{"production", "staging"}, "2\nproduction\n", nil, 5, []string{`not "staging"`}, ""},
		{"a number that is none", []gatePlan{"production", "staging"}, "3\nproduction\n", nil, 1, []string{`"3" is none of 1 to 2`}, ""},
		{"nothing waits", nil, "production\n", nil, 3, []string{"nothing waits"}, ""},
		{"decline", []gatePlan{"production"}, "y\n", []string{"--decline"}, 5, []string{"Gate production", "Declined."}, "a person declined: nothing was done"},
		{"decline, but not", []gatePlan{"production"}, "n\n", []string{"--decline"}, 5, []string{"still waits"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := socketFolder(t)
			d := waitingDesk(t, folder, c.plans...)
			keyboard, terminal := pseudoTerminal(t)
			if _, err := keyboard.WriteString(c.typed); err != nil {
				t.Fatal(err)
			}
			got := runConfirm(terminal, append(c.args, "--folder", folder)...)
			if got.code != c.code {
				t.Errorf("exit code %d, want %d", got.code, c.code)
			}
			for _, s := range c.says {
				if !strings.Contains(got.out+got.err, s) {
					t.Errorf("does not say %q:\n%s%s", s, got.out, got.err)
				}
			}
			if strings.Contains(got.out+got.err, "\x1b") {
				t.Errorf("an escape sequence reached the terminal: %q", got.out)
			}
			if is := confirmed(t, d, c.plans...); is != c.confirmed {
				t.Errorf("confirmed: %q, want %q", is, c.confirmed)
			}
		})
	}
}
