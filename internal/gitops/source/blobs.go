package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// blob is one content in the private folder.
type blob struct {
	// refs counts the files of artifacts with this content.
	refs int
	size int64
}

func (s *Store) blobPath(h plumbing.Hash) string {
	hex := h.String()
	return filepath.Join(s.dir, "blobs", hex[:2], hex[2:])
}

// keep writes a content, unless the store has it. The caller holds build.
func (s *Store) keep(h plumbing.Hash, data []byte) error {
	if s.closed {
		return fail(Unreadable, "the store is closed")
	}
	if s.blobs[h] != nil {
		return nil
	}
	file := s.blobPath(h)
	err := os.WriteFile(file, data, 0o400)
	if err != nil {
		// The first of its folder, or what a failure left half written behind.
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			_ = os.Remove(file)
			err = os.WriteFile(file, data, 0o400)
		}
	}
	if err != nil {
		return coded("the private folder", err)
	}
	s.blobs[h] = &blob{size: int64(len(data))}
	return nil
}

// link puts a content into an artifact's folder. The caller holds build.
func (s *Store) link(h plumbing.Hash, to string) error {
	from := s.blobPath(h)
	if err := os.Link(from, to); err == nil {
		return nil
	}
	// No hard links here, or too many of this one: copy.
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o400)
}

// tooBig is the error for a file that no artifact may hold.
func (s *Store) tooBig(p string, size int64) error {
	return fail(TooLarge, "file %s has %d bytes, more than the limit of %d for one file of an artifact: leave it out with a .sourceignore file or spec.ignore, or raise the limit", p, size, s.limits.FileBytes)
}

// fetchBlob brings a Git object into the store. The caller holds build and the
// repository's lock.
func (s *Store) fetchBlob(r *repository, p string, h plumbing.Hash) (int64, error) {
	if b := s.blobs[h]; b != nil {
		return b.size, s.checkSize(p, b.size)
	}
	size, err := r.storage.EncodedObjectSize(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return 0, fail(Unreadable, "the content of %s is not in this repository: it is damaged, or a partial clone", p)
	}
	if err != nil {
		return 0, coded("file "+p, err)
	}
	if err := s.checkSize(p, size); err != nil {
		return 0, err
	}
	data, err := readObject(r, h, size)
	if err != nil {
		return 0, coded("file "+p, err)
	}
	s.filesRead.Add(1)
	// Contents are shared between repositories by their hash, and go-git does not
	// check what it unpacks: a pack that lies must not lend its lie to others.
	if got := plumbing.ComputeHash(plumbing.BlobObject, data); got != h {
		return 0, fail(Unreadable, "the content of %s is not what its hash says: the repository is damaged", p)
	}
	return size, s.keep(h, data)
}

func (s *Store) checkSize(p string, size int64) error {
	if size > s.limits.FileBytes {
		return s.tooBig(p, size)
	}
	return nil
}

func readObject(r *repository, h plumbing.Hash, size int64) ([]byte, error) {
	obj, err := r.storage.EncodedObject(plumbing.BlobObject, h)
	if err != nil {
		return nil, err
	}
	reader, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	// One byte more than it says tells a wrong size.
	return io.ReadAll(io.LimitReader(reader, size+1))
}

// diskIndex remembers what was read of one working tree.
type diskIndex struct {
	mu    sync.Mutex
	files map[string]known
}

// diskIndexOf gives the memory of a folder.
func (s *Store) diskIndexOf(dir string) *diskIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.disk.get(dir)
	if !ok {
		d = &diskIndex{files: map[string]known{}}
		s.disk.put(dir, d)
	}
	return d
}

func (d *diskIndex) hash(e *entry) (plumbing.Hash, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.files[e.path]
	return k.hash, ok && !k.young && k.stat == e.stat
}

func (d *diskIndex) remember(p string, k known) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[p] = k
}

// forget drops files that are no longer there, so that memory follows the tree.
func (d *diskIndex) forget(l *listing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.files) <= 2*len(l.entries)+1000 {
		return
	}
	kept := map[string]known{}
	for i := range l.entries {
		if k, ok := d.files[l.entries[i].path]; ok {
			kept[l.entries[i].path] = k
		}
	}
	d.files = kept
}

// fetchFile brings a file of a working tree into the store, reading it only when
// it may have changed. The caller holds build.
func (s *Store) fetchFile(root *os.Root, d *diskIndex, e *entry) (plumbing.Hash, int64, error) {
	if h, ok := d.hash(e); ok {
		if b := s.blobs[h]; b != nil {
			return h, b.size, s.checkSize(e.path, b.size)
		}
	}
	if err := s.checkSize(e.path, e.stat.size); err != nil {
		return plumbing.ZeroHash, 0, err
	}
	for range 3 {
		data, info, err := s.slurp(root, e.path)
		if errors.Is(err, fs.ErrNotExist) {
			return plumbing.ZeroHash, 0, fail(Unreadable, "file %s vanished while the tree was read: ask again", e.path)
		}
		if err != nil {
			return plumbing.ZeroHash, 0, coded("file "+e.path, err)
		}
		if int64(len(data)) != info.Size() {
			continue // it is being written
		}
		h := plumbing.ComputeHash(plumbing.BlobObject, data)
		st := statOf(info)
		d.remember(e.path, known{stat: st, hash: h, young: st.youngAt(time.Now())})
		return h, st.size, s.keep(h, data)
	}
	return plumbing.ZeroHash, 0, fail(Unreadable, "file %s changes while it is read: ask again", e.path)
}

// slurp reads a whole file, up to the limit of one.
func (s *Store) slurp(root *os.Root, p string) ([]byte, os.FileInfo, error) {
	f, info, err := openRegular(root, p)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if err := s.checkSize(p, info.Size()); err != nil {
		return nil, nil, err
	}
	s.filesRead.Add(1)
	var buf bytes.Buffer
	buf.Grow(int(info.Size()) + bytes.MinRead)
	_, err = buf.ReadFrom(io.LimitReader(f, info.Size()+1))
	return buf.Bytes(), info, err
}

// hashFile hashes a file or link of a working tree without keeping its content.
func (s *Store) hashFile(root *os.Root, d *diskIndex, e *entry) (plumbing.Hash, error) {
	if !e.isFile() {
		to, err := root.Readlink(filepath.FromSlash(e.path))
		return plumbing.ComputeHash(plumbing.BlobObject, []byte(filepath.ToSlash(to))), coded("link "+e.path, err)
	}
	if h, ok := d.hash(e); ok {
		return h, nil
	}
	f, info, err := openRegular(root, e.path)
	if err != nil {
		return plumbing.ZeroHash, coded("file "+e.path, err)
	}
	defer f.Close()
	s.filesRead.Add(1)
	hasher := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	n, err := io.Copy(hasher, io.LimitReader(f, info.Size()+1))
	if err != nil {
		return plumbing.ZeroHash, coded("file "+e.path, err)
	}
	h, st := hasher.Sum(), statOf(info)
	if n == info.Size() {
		d.remember(e.path, known{stat: st, hash: h, young: st.youngAt(time.Now())})
	}
	return h, nil
}
