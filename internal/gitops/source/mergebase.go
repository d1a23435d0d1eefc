package source

import (
	"bytes"
	"container/heap"
	"context"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Marks of a commit while two histories are walked.
const (
	ofFirst = 1 << iota
	ofSecond
	stale // below a common ancestor
)

// newestFirst is a queue of commits by date.
type newestFirst []*object.Commit

func (q newestFirst) Len() int           { return len(q) }
func (q newestFirst) Less(i, j int) bool { return newer(q[i], q[j]) < 0 }
func (q newestFirst) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *newestFirst) Push(x any)        { *q = append(*q, x.(*object.Commit)) }
func (q *newestFirst) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}

// newer orders commits from the newest on; equal dates go by hash.
func newer(a, b *object.Commit) int {
	if n := b.Committer.When.Compare(a.Committer.When); n != 0 {
		return n
	}
	return bytes.Compare(a.Hash[:], b.Hash[:])
}

// mergeBases gives the best common ancestors of two commits, the newest first.
// It walks both histories from the newest commit on until only ancestors of
// common ancestors are left, so it reads little of a long history, and it stops
// at the edge of a shallow clone, where go-git's own walk would fail.
func (r *repository) mergeBases(ctx context.Context, a, b *object.Commit) ([]*object.Commit, error) {
	found, err := r.commonAncestors(ctx, a, b)
	if err != nil || len(found) < 2 {
		return found, err
	}
	// Dates that run backwards let an ancestor of a better one through.
	best := found[:0:0]
	for _, c := range found {
		redundant := false
		for _, other := range found {
			if other == c {
				continue
			}
			of, err := r.commonAncestors(ctx, c, other)
			if err != nil {
				return nil, err
			}
			redundant = redundant || len(of) > 0 && slices.ContainsFunc(of, func(x *object.Commit) bool { return x.Hash == c.Hash })
		}
		if !redundant {
			best = append(best, c)
		}
	}
	return best, nil
}

func (r *repository) commonAncestors(ctx context.Context, a, b *object.Commit) ([]*object.Commit, error) {
	if a.Hash == b.Hash {
		return []*object.Commit{a}, nil
	}
	marks := map[plumbing.Hash]int{a.Hash: ofFirst, b.Hash: ofSecond}
	queued := map[plumbing.Hash]int{a.Hash: 1, b.Hash: 1}
	queue := newestFirst{a, b}
	heap.Init(&queue)
	// live counts queued commits that are not stale.
	live := 2
	commits := map[plumbing.Hash]*object.Commit{}
	for live > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := heap.Pop(&queue).(*object.Commit)
		queued[c.Hash]--
		mark := marks[c.Hash]
		if mark&stale == 0 {
			live--
		}
		if mark&(ofFirst|ofSecond|stale) == ofFirst|ofSecond {
			commits[c.Hash] = c
			mark |= stale
		}
		if r.shallow[c.Hash] {
			continue
		}
		for _, h := range c.ParentHashes {
			old := marks[h]
			if old|mark == old {
				continue
			}
			if old&stale == 0 && mark&stale != 0 {
				live -= queued[h]
			}
			marks[h] = old | mark
			parent, err := r.commit(h)
			if err != nil {
				return nil, err
			}
			heap.Push(&queue, parent)
			queued[h]++
			if marks[h]&stale == 0 {
				live++
			}
		}
	}
	var out []*object.Commit
	for h, c := range commits {
		if marks[h]&stale == 0 {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, newer)
	return out, nil
}
