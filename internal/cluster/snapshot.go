package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of a snapshot, in bytes: beyond them it is refused as TooLarge
// instead of exhausting the memory.
const (
	MaxFile  = 64 << 20
	MaxTotal = 256 << 20
)

// metaFile stands beside the objects and says when they were dumped:
// {"capturedAt": "<RFC 3339>"}. It is no object.
const metaFile = "meta.json"

// openSnapshot reads a file or a folder.
func openSnapshot(ctx context.Context, o Options) (*Source, error) {
	abs, err := filepath.Abs(o.Snapshot)
	if err != nil {
		return nil, &UsageError{Message: "cannot use the snapshot " + o.Snapshot, Err: err}
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, &UsageError{Message: "cannot read the snapshot", Err: err}
	}
	dir := abs
	only := ""
	switch {
	case info.Mode().IsRegular():
		dir, only = filepath.Split(abs)
	case !info.IsDir():
		return nil, &UsageError{Message: "the snapshot " + o.Snapshot + " is neither a file nor a folder"}
	}
	// A Root refuses what leads out of the folder, whatever symlinks say.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &UsageError{Message: "cannot read the snapshot", Err: err}
	}
	defer root.Close()
	l := loader{fsys: root.FS(), store: newStore(), maxFile: MaxFile, maxTotal: MaxTotal}
	if only == "" {
		err = l.folder(ctx)
	} else {
		// The file that a person names may be a symlink to anywhere.
		l.fsys = singleFile{name: only, path: abs}
		err = l.file(only)
	}
	if err == nil {
		err = l.store.finish()
	}
	if err != nil {
		return nil, err
	}
	return l.source(ModeSnapshot, filepath.Base(abs), o), nil
}

// singleFile is a file system of one file.
type singleFile struct{ name, path string }

func (s singleFile) Open(name string) (fs.File, error) {
	if name != s.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return os.Open(s.path)
}

// loader reads a file system of objects into a store.
type loader struct {
	fsys              fs.FS
	store             *store
	maxFile, maxTotal int64
	total             int64
	captured          time.Time
	warnings          []string
}

// folder reads every .yaml, .yml and .json file, in the order of their paths.
// Hidden files and folders, other files and symlinked folders are left out; a
// symlink that leads out of the folder or nowhere is an error.
func (l *loader) folder(ctx context.Context) error {
	if err := l.readMeta(); err != nil {
		return err
	}
	return fs.WalkDir(l.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return &SnapshotError{File: name, Code: CodeInvalidArgument, Err: err}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		base := path.Base(name)
		if name != "." && strings.HasPrefix(base, ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			info, err := fs.Stat(l.fsys, name)
			if err == nil && info.IsDir() {
				l.warnings = append(l.warnings, "the symlinked folder "+name+" was not read")
				return nil
			}
		}
		if d.IsDir() || base == metaFile || !isObjectFile(base) {
			return nil
		}
		return l.file(name)
	})
}

func isObjectFile(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// file reads one file of objects.
func (l *loader) file(name string) error {
	data, err := l.read(name)
	if err != nil || data == nil {
		return err
	}
	return l.store.decodeFile(name, data)
}

// read returns a file's content within the limits, nil for what is no regular
// file (a pipe would block).
func (l *loader) read(name string) ([]byte, error) {
	info, err := fs.Stat(l.fsys, name)
	if err != nil {
		return nil, &SnapshotError{File: name, Code: CodeInvalidArgument, Err: fmt.Errorf("cannot be read, or leads out of the snapshot: %w", err)}
	}
	if !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := l.fsys.Open(name)
	if err != nil {
		return nil, &SnapshotError{File: name, Code: CodeInvalidArgument, Err: err}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, l.maxFile+1))
	if err != nil {
		return nil, &SnapshotError{File: name, Code: CodeInvalidArgument, Err: err}
	}
	l.total += int64(len(data))
	switch {
	case int64(len(data)) > l.maxFile:
		return nil, &SnapshotError{File: name, Code: CodeTooLarge, Err: fmt.Errorf("larger than %d bytes", l.maxFile)}
	case l.total > l.maxTotal:
		return nil, &SnapshotError{File: name, Code: CodeTooLarge, Err: fmt.Errorf("with it the snapshot is larger than %d bytes", l.maxTotal)}
	}
	return data, nil
}

// readMeta reads the capture time of a folder, if it says so.
func (l *loader) readMeta() error {
	if _, err := fs.Stat(l.fsys, metaFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, err := l.read(metaFile)
	if err != nil || data == nil {
		return err
	}
	var m struct {
		CapturedAt string `json:"capturedAt"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return &SnapshotError{File: metaFile, Code: CodeInvalidArgument, Err: fmt.Errorf(`%w; valid: {"capturedAt": "2026-01-02T15:04:05Z"}`, err)}
	}
	if m.CapturedAt == "" {
		return nil
	}
	l.captured, err = time.Parse(time.RFC3339Nano, m.CapturedAt)
	if err != nil {
		return &SnapshotError{File: metaFile, Code: CodeInvalidArgument, Err: fmt.Errorf("capturedAt %q is not a time of RFC 3339, such as 2026-01-02T15:04:05Z", m.CapturedAt)}
	}
	return nil
}

// source makes the Source of what was loaded.
func (l *loader) source(mode Mode, name string, o Options) *Source {
	s := &Source{
		Client:    &memory{mode: mode, store: l.store},
		Mode:      mode,
		Cluster:   name,
		Namespace: o.Namespace,
		Identity:  fixedIdentity(string(mode)),
		Now:       o.clock(l.captured),
		Offline:   mode == ModeSnapshot,
		Warnings:  l.warnings,
	}
	if s.Namespace == "" {
		s.Namespace = metav1.NamespaceDefault
		if found := l.store.hecateNamespaces(); len(found) == 1 {
			s.Namespace = found[0]
		}
	}
	s.Untimed = o.Now == nil && l.captured.IsZero()
	if s.Untimed {
		s.Warnings = append(s.Warnings, fmt.Sprintf(
			"the %s does not say when it was captured (no capturedAt in %s): ages and windows are judged by the wall clock; set the time with --now", mode, metaFile))
	}
	if n := l.store.unknownFields; n > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf(
			"%d field(s) of Hecate objects are unknown to this build and were left out of typed answers; the first: %s", n, l.store.firstUnknown))
	}
	return s
}
