package source

import (
	"container/list"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// keepIdle is how many artifacts that nobody uses are kept for the next call.
	keepIdle = 8
	// keepRepos, keepListings and keepTrees bound what is remembered in memory.
	keepRepos    = 4
	keepListings = 8
	keepTrees    = 8
)

// Store owns a private folder with file contents and artifacts. It is safe for
// concurrent use.
type Store struct {
	dir    string
	limits Limits

	// mu guards what is remembered of repositories. It is never held while
	// anything is read.
	mu       sync.Mutex
	repos    *recent[string, *repository]
	listings *recent[string, *listing]
	disk     *recent[string, *diskIndex]

	// build guards the private folder: artifacts are made one after the other.
	build     sync.Mutex
	closed    bool
	blobs     map[plumbing.Hash]*blob
	artifacts map[string]*Artifact
	clock     int
	// matches are, by ignore rules, what those said of a tree's paths.
	matches *recent[string, map[matched]string]

	// filesRead counts contents read from working trees and Git objects.
	filesRead atomic.Int64
}

// NewStore makes a store and its private folder; Close removes it.
func NewStore(l Limits) (*Store, error) {
	dir, err := os.MkdirTemp("", "hecate-mcp-source-")
	if err != nil {
		return nil, fmt.Errorf("a private folder for trees: %w", err)
	}
	// Paths below a link would not compare with what a renderer resolves.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return &Store{dir: dir, limits: l.orDefault(),
		repos: newRecent[string, *repository](keepRepos), listings: newRecent[string, *listing](keepListings), disk: newRecent[string, *diskIndex](keepTrees),
		blobs: map[plumbing.Hash]*blob{}, artifacts: map[string]*Artifact{}, matches: newRecent[string, map[matched]string](keepTrees)}, nil
}

// Close removes the private folder; trees and artifacts are gone with it.
func (s *Store) Close() error {
	s.build.Lock()
	defer s.build.Unlock()
	s.closed = true
	s.artifacts, s.blobs = map[string]*Artifact{}, map[plumbing.Hash]*blob{}
	return os.RemoveAll(s.dir)
}

// evict removes the artifacts that were idle longest, and contents that no
// artifact has. The caller holds build.
func (s *Store) evict() {
	var idle []*Artifact
	for _, a := range s.artifacts {
		if !a.inUse() {
			idle = append(idle, a)
		}
	}
	if len(idle) <= keepIdle {
		return
	}
	slices.SortFunc(idle, func(a, b *Artifact) int { return a.used - b.used })
	for _, a := range idle[:len(idle)-keepIdle] {
		s.drop(a)
		// What can't be removed now goes with the private folder.
		_ = os.RemoveAll(a.Dir)
	}
}

// drop forgets an artifact, and contents that no artifact has. The caller holds
// build.
func (s *Store) drop(a *Artifact) {
	delete(s.artifacts, a.key)
	for _, h := range a.hashes {
		s.blobs[h].refs--
	}
	for h, b := range s.blobs {
		if b.refs == 0 {
			delete(s.blobs, h)
			_ = os.Remove(s.blobPath(h)) // what stays goes with the private folder
		}
	}
}

// recent is a map that forgets what was used longest ago. It is not safe for
// concurrent use.
type recent[K comparable, V any] struct {
	bound int
	order *list.List
	items map[K]*list.Element
}

type recentItem[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](bound int) *recent[K, V] {
	return &recent[K, V]{bound: bound, order: list.New(), items: map[K]*list.Element{}}
}

func (r *recent[K, V]) get(k K) (V, bool) {
	e, ok := r.items[k]
	if !ok {
		var zero V
		return zero, false
	}
	r.order.MoveToFront(e)
	return e.Value.(recentItem[K, V]).value, true
}

func (r *recent[K, V]) put(k K, v V) {
	if e, ok := r.items[k]; ok {
		r.order.Remove(e)
	}
	r.items[k] = r.order.PushFront(recentItem[K, V]{k, v})
	for r.order.Len() > r.bound {
		last := r.order.Back()
		delete(r.items, r.order.Remove(last).(recentItem[K, V]).key)
	}
}
