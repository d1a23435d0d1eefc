//go:build !linux

package confirm

import "net"

// sameUser relies on the mode of the folder alone.
func sameUser(*net.UnixConn) error { return nil }
