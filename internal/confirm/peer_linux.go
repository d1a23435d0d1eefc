package confirm

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// sameUser returns an error unless the process at the other end runs as the
// user of this one.
func sameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("the other end runs as user %d", cred.Uid)
	}
	return nil
}
