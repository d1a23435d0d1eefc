package source

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// A revision is a name and steps through parents: HEAD~2, main^2~1, v1.0^{}.
// Searches through messages or the reflog are left out on purpose.
var (
	revisionForm = regexp.MustCompile(`^([^~^:?*\[\\\x00-\x20\x7f]+?)((?:~[0-9]*|\^[0-9]*|\^\{\}|\^\{commit\})*)$`)
	stepForm     = regexp.MustCompile(`~[0-9]*|\^\{[a-z]*\}|\^[0-9]*`)
	hashForm     = regexp.MustCompile(`^[0-9a-fA-F]{4,40}$`)
)

// resolve finds the commit that a ref names.
func (r *repository) resolve(ctx context.Context, ref string) (*object.Commit, error) {
	m := revisionForm.FindStringSubmatch(ref)
	if m == nil || strings.Contains(m[1], "..") || strings.Contains(m[1], "@{") || strings.HasPrefix(m[1], "-") || strings.HasPrefix(m[1], "/") {
		return nil, fail(InvalidArgument, "%q is not a branch, tag or commit; valid are names such as main, origin/main, v1.0, a commit's hash, and HEAD~2", ref)
	}
	name := m[1]
	if name == "@" {
		name = "HEAD"
	}
	c, err := r.named(name)
	if err != nil {
		return nil, err
	}
	if c == nil {
		e := fail(UnknownRef, "there is no branch, tag or commit %q in this repository", name)
		e.Valid = r.someRefs()
		if len(e.Valid) > 0 {
			e.Message += "; there are " + strings.Join(e.Valid, ", ")
		}
		return nil, e
	}
	for _, step := range stepForm.FindAllString(m[2], -1) {
		if c, err = r.step(ctx, c, step, ref); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// step follows ~n or ^n from a commit.
func (r *repository) step(ctx context.Context, c *object.Commit, step, ref string) (*object.Commit, error) {
	n, digits := 1, step[1:]
	if strings.HasPrefix(digits, "{") {
		return c, nil
	}
	if digits != "" {
		var err error
		if n, err = strconv.Atoi(digits); err != nil {
			return nil, fail(InvalidArgument, "%q goes back too far: %s", ref, step)
		}
	}
	times, which := n, 0
	if step[0] == '^' {
		times, which = min(n, 1), n-1
	}
	for range times {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if which >= len(c.ParentHashes) || r.shallow[c.Hash] {
			if r.shallow[c.Hash] {
				return nil, r.errShallow(fmt.Sprintf("%s can't be found", ref))
			}
			return nil, fail(UnknownRef, "%s does not exist: commit %s has %d parents", ref, short(c.Hash), len(c.ParentHashes))
		}
		var err error
		if c, err = r.commit(c.ParentHashes[which]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// named finds the commit of a plain name, nil when there is none. Names come
// before abbreviated hashes, as in Git.
func (r *repository) named(name string) (*object.Commit, error) {
	if len(name) == 40 && hashForm.MatchString(name) {
		return r.peel(plumbing.NewHash(name))
	}
	for _, rule := range plumbing.RefRevParseRules {
		full := plumbing.ReferenceName(fmt.Sprintf(rule, name))
		ref, err := storer.ResolveReference(r.storage, full)
		if err == nil {
			return r.peel(ref.Hash())
		}
		// Anything else than a found name is looked for under the next rule: a
		// folder refs/heads/x is an error of the file system, no damage.
	}
	if !hashForm.MatchString(name) {
		return nil, nil
	}
	prefix, err := hex.DecodeString(name[:len(name)&^1])
	if err != nil {
		return nil, nil // can't be: the form allows only hexadecimal digits
	}
	hashes, err := r.storage.HashesWithPrefix(prefix)
	if err != nil {
		return nil, coded("the objects of this repository", err)
	}
	var found *object.Commit
	for _, h := range hashes {
		if !strings.HasPrefix(h.String(), strings.ToLower(name)) {
			continue
		}
		c, err := r.peel(h)
		if err != nil {
			return nil, err
		}
		if c != nil && found != nil && c.Hash != found.Hash {
			return nil, &Error{Code: UnknownRef, Message: fmt.Sprintf("%s is the start of several commits; give more digits", name), Valid: []string{found.Hash.String(), c.Hash.String()}}
		}
		if c != nil {
			found = c
		}
	}
	return found, nil
}

// peel follows tags to a commit, nil when the hash names no commit.
func (r *repository) peel(h plumbing.Hash) (*object.Commit, error) {
	for range 10 {
		obj, err := r.storage.EncodedObject(plumbing.AnyObject, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, coded("object "+short(h), err)
		}
		switch obj.Type() {
		case plumbing.CommitObject:
			return r.commit(h)
		case plumbing.TagObject:
			t, err := object.GetTag(r.storage, h)
			if err != nil {
				return nil, coded("tag object "+short(h), err)
			}
			h = t.Target
		default:
			return nil, nil
		}
	}
	return nil, fail(Unreadable, "object %s is a tag of a tag of a tag…", short(h))
}

func (r *repository) commit(h plumbing.Hash) (*object.Commit, error) {
	c, err := object.GetCommit(r.storage, h)
	return c, coded("commit "+short(h), err)
}

// head is the commit of HEAD, nil before the first.
func (r *repository) head() (*object.Commit, error) {
	ref, err := storer.ResolveReference(r.storage, plumbing.HEAD)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, coded("HEAD", err)
	}
	return r.peel(ref.Hash())
}

func (r *repository) errShallow(what string) error {
	return fail(Shallow, "%s: this is a shallow clone that lacks the history; fetch it with `git fetch --unshallow` (in CI, a fetch depth of 0)", what)
}

// someRefs are some branches and tags, for a message.
func (r *repository) someRefs() []string {
	iter, err := r.storage.IterReferences()
	if err != nil {
		return nil // the error being reported matters more than its suggestions
	}
	defer iter.Close()
	var branches, remote, tags []string
	_ = iter.ForEach(func(ref *plumbing.Reference) error { // suggestions, as above
		switch n := ref.Name(); {
		case n.IsBranch():
			branches = append(branches, n.Short())
		case n.IsRemote() && !strings.HasSuffix(string(n), "/HEAD"):
			remote = append(remote, n.Short())
		case n.IsTag():
			tags = append(tags, n.Short())
		}
		return nil
	})
	slices.Sort(branches)
	slices.Sort(remote)
	slices.Sort(tags)
	slices.Reverse(tags)
	// Branches must not crowd out all tags.
	all := slices.Concat(branches, remote)
	all = all[:min(len(all), max(maxValid-len(tags), maxValid-3))]
	return append(all, tags[:min(len(tags), maxValid-len(all))]...)
}

// DefaultBase names what a head ("" is the working tree) is compared with when the
// user names nothing: the default branch of origin, else a local main or master,
// leaving out the head's own branch and what the head is part of already; else the
// commit before the head, or HEAD for the working tree of a first commit. It fails with UnknownRef when there is none, and as Open
// does for the head.
func (s *Store) DefaultBase(ctx context.Context, repoPath, head string) (string, error) {
	p, err := locate(repoPath)
	if err != nil {
		return "", err
	}
	r, err := s.open(p, repoPath)
	if err != nil {
		return "", err
	}
	defer r.mu.Unlock()
	name, on := head, plumbing.NewBranchReferenceName(head)
	if head == "" {
		name = "HEAD"
		if ref, err := r.storage.Reference(plumbing.HEAD); err == nil {
			on = ref.Target()
		}
	}
	to, err := r.resolve(ctx, name)
	if err != nil {
		return "", err
	}
	for _, candidate := range []plumbing.ReferenceName{"refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main", "refs/heads/master"} {
		ref, err := storer.ResolveReference(r.storage, candidate)
		if err != nil || candidate == on {
			// A name that leads nowhere is no base.
			continue
		}
		c, err := r.peel(ref.Hash())
		if err != nil {
			return "", err
		}
		if c == nil {
			continue
		}
		// A commit of the base itself changed something against its parent only. A
		// working tree may still hold more than its commit.
		if head != "" {
			common, err := r.mergeBases(ctx, c, to)
			if err != nil {
				return "", err
			}
			if slices.ContainsFunc(common, func(x *object.Commit) bool { return x.Hash == to.Hash }) {
				continue
			}
		}
		return ref.Name().Short(), nil
	}
	if len(to.ParentHashes) > 0 && !r.shallow[to.Hash] {
		return name + "~1", nil
	}
	if head == "" {
		// A first commit: what is not committed yet.
		return "HEAD", nil
	}
	e := fail(UnknownRef, "there is no origin/HEAD, origin/main, origin/master, main or master to compare with, nor a commit before %s: name a base", name)
	e.Valid = r.someRefs()
	return "", e
}

func short(h plumbing.Hash) string { return h.String()[:12] }
