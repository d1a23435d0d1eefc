package confirm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// folderName is the folder for sockets within a folder of the user's.
const folderName = "hecate-mcp"

// Folder returns where a server of this user puts its socket: the first of
// Folders, "" where the system can't keep a folder private.
func Folder() string {
	if all := Folders(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Folders returns every folder in which a server of this user may have put its
// socket, the preferred first: below $XDG_RUNTIME_DIR, the runtime folder that
// the system made for the user, the user's cache folder, the folder for
// temporary files. MCP clients start servers with few variables of the
// environment, so that a server and a terminal may prefer different ones.
func Folders() []string {
	if !private {
		return nil
	}
	uid := strconv.Itoa(os.Getuid())
	var out []string
	add := func(dir string) {
		for _, have := range out {
			if have == dir {
				return
			}
		}
		out = append(out, dir)
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		add(filepath.Join(dir, folderName))
	}
	if dir := filepath.Join("/run/user", uid); runtime.GOOS == "linux" && checkFolder(dir) == nil {
		add(filepath.Join(dir, folderName))
	}
	if dir, err := os.UserCacheDir(); err == nil && filepath.IsAbs(dir) {
		add(filepath.Join(dir, folderName, "run"))
	}
	add(filepath.Join(os.TempDir(), folderName+"-"+uid))
	return out
}

// makeFolder makes the folder when it is not there, and checks it.
func makeFolder(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return &FolderError{Folder: dir, Problem: "can't be made", Err: err}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return &FolderError{Folder: dir, Problem: "can't be made", Err: err}
	}
	return checkFolder(dir)
}

// checkFolder returns a *FolderError unless dir is a folder, no link to one,
// that the user owns and nobody else can enter. It wraps fs.ErrNotExist when
// there is none.
func checkFolder(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return &FolderError{Folder: dir, Problem: "can't be looked at", Err: err}
	case info.Mode()&fs.ModeSymlink != 0:
		return &FolderError{Folder: dir, Problem: "is a symbolic link"}
	case !info.IsDir():
		return &FolderError{Folder: dir, Problem: "is not a folder"}
	case !owned(info):
		return &FolderError{Folder: dir, Problem: "belongs to another user"}
	case info.Mode().Perm()&0o077 != 0:
		return &FolderError{Folder: dir, Problem: fmt.Sprintf("is open to other users (mode %04o); it must have mode 0700", info.Mode().Perm())}
	}
	return nil
}
