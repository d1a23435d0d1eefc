package examples

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

//go:embed all:repository
var repository embed.FS

// Branch is the branch of the demo's repository with a change to be judged: more
// memory in the base, and a slip of the pen in production's patch.
const Branch = "more-memory"

// Repository makes the demo's Flux repository in an empty folder: the branch main,
// checked out, and Branch with one commit more. Names, times and with them the
// hashes are always the same.
func Repository(dir string) error {
	repo, err := git.PlainInitWithOptions(dir, &git.PlainInitOptions{InitOptions: git.InitOptions{DefaultBranch: plumbing.Main}})
	if err != nil {
		return fmt.Errorf("the demo's repository: %w", err)
	}
	if _, err := repo.CreateRemote(&config.RemoteConfig{Name: "origin", URLs: []string{"https://git.example.com/shop/deploy.git"}}); err != nil {
		return fmt.Errorf("the demo's repository: %w", err)
	}
	work, err := repo.Worktree()
	if err != nil {
		return fmt.Errorf("the demo's repository: %w", err)
	}
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	commit := func(folder, message string) error {
		if err := unpack(path.Join("repository", folder), dir); err != nil {
			return err
		}
		if err := work.AddWithOptions(&git.AddOptions{All: true}); err != nil {
			return err
		}
		at = at.Add(time.Hour)
		_, err := work.Commit(message, &git.CommitOptions{Author: &object.Signature{Name: "demo", Email: "demo@example.com", When: at}})
		return err
	}
	branch := func(name plumbing.ReferenceName, create bool) error {
		return work.Checkout(&git.CheckoutOptions{Branch: name, Create: create, Force: true})
	}
	pushed := func() error {
		head, err := repo.Head()
		if err != nil {
			return err
		}
		return repo.Storer.SetReference(plumbing.NewHashReference(plumbing.NewRemoteReferenceName("origin", "main"), head.Hash()))
	}
	err = errors.Join(
		commit("main", "The shop's storefront, in three environments"),
		pushed(),
		branch(plumbing.NewBranchReferenceName(Branch), true),
		commit("change", "More memory for the storefront, more replicas in production"),
		branch(plumbing.Main, false))
	if err != nil {
		return fmt.Errorf("the demo's repository: %w", err)
	}
	return nil
}

// unpack writes an embedded folder over another.
func unpack(from, to string) error {
	return fs.WalkDir(repository, from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := repository.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}
