package source

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// CleanPath gives a path relative to a root, however it was written ("./a",
// "/a", "a/"): no leading slash, never above the root; "." is the root itself.
func CleanPath(p string) string {
	p = strings.TrimPrefix(path.Clean("/"+p), "/")
	if p == "" {
		return "."
	}
	return p
}

// under gives the part of p below dir, and whether p lies there; "." holds all.
func under(p, dir string) (string, bool) {
	if dir == "." {
		return p, true
	}
	if p == dir {
		return ".", true
	}
	return strings.CutPrefix(p, dir+"/")
}

// join puts a name below a folder without cleaning: a hostile name stays itself.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// badName says why a name in a Git tree can't be one of a file, or "".
func badName(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case name == "." || name == "..":
		return "it leaves its folder"
	case strings.ContainsAny(name, "/\x00"):
		return "it holds a slash or a NUL"
	case strings.EqualFold(name, ".git"):
		return "it is Git's own folder"
	}
	return ""
}

// plain strips the absolute path from an error of the operating system, so that
// messages don't tell where things lie on this machine.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}
