package confirm

import (
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOtherUser holds that a process of another user is not served, even
// where the folder would let it in.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	d := newWriter(t, Options{}).desk
	// An abstract socket has no mode that would keep anybody out.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@hecate-mcp-test-" + t.TempDir(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The user is the connecting thread's. The goroutine keeps its thread to
	// itself until it ends, and the thread ends with it.
	dial := func(uid int) *net.UnixConn {
		dialed := make(chan *net.UnixConn)
		go func() {
			defer close(dialed)
			runtime.LockOSThread()
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
				t.Error(errno)
				return
			}
			c, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
			if err != nil {
				t.Error(err)
				return
			}
			dialed <- c
		}()
		return <-dialed
	}
	for uid, served := range map[int]bool{0: true, 12345: false} {
		c := dial(uid)
		if c == nil {
			t.FailNow()
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(`{"v":1,"op":"list"}` + "\n")); err != nil {
			t.Fatal(err)
		}
		s, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.serve(s); (err == nil) != served || err != nil && !strings.Contains(err.Error(), "user 12345") {
			t.Errorf("user %d: %v", uid, err)
		}
		s.Close()
		answer := make([]byte, 100)
		if n, _ := c.Read(answer); (n > 0) != served {
			t.Errorf("user %d: %q", uid, answer[:n])
		}
	}
}
