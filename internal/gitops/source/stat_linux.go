package source

import (
	"io/fs"
	"syscall"
)

// fileID gives the inode and the change time (in nanoseconds) of a file, which
// tell an edit even where size and modification time were kept.
func fileID(fi fs.FileInfo) (inode uint64, changed int64) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st.Ino, st.Ctim.Nano()
	}
	return 0, 0
}
