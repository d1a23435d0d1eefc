package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKillEndsTheProgramItself(t *testing.T) {
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	p, err := run(dir, "/bin/sh", "-c", "echo $$ >"+pidFile+"; exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	err = p.waitReady(func() error {
		data, err := os.ReadFile(pidFile)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err
	})
	if err := errors.Join(err, p.kill()); err != nil {
		t.Fatal(err)
	}
	// Init may take a moment to bury it.
	for deadline := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the program, process %d, is still there", pid)
		}
	}
	if err := p.kill(); err != nil {
		t.Errorf("killing it again: %v", err)
	}
}

func TestWaitReadyShowsTheLogOfAProgramThatEnds(t *testing.T) {
	p, err := run(t.TempDir(), "/bin/sh", "-c", "echo flag provided but not defined >&2; exit 2")
	if err != nil {
		t.Fatal(err)
	}
	err = p.waitReady(func() error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "flag provided but not defined") {
		t.Errorf("got %v, want the program's last words", err)
	}
}
