//go:build unix

package confirm

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// private says that modes and owners keep other users out of a folder.
const private = true

// owned reports whether the file belongs to the user of this process.
func owned(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

// alive reports whether a process of that id may still be there.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
