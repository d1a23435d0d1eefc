package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// lifecycle is when an API version begins and ends: minors of Kubernetes 1,
// 0 when it is not said.
type lifecycle struct {
	Group       string `json:"group,omitempty"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	Introduced  int    `json:"introduced,omitempty"`
	Deprecated  int    `json:"deprecated,omitempty"`
	Removed     int    `json:"removed,omitempty"`
	Replacement string `json:"replacement,omitempty"` // "apps/v1 Deployment"
}

// lifecycles reads them from k8s.io/api of every release.
func lifecycles() ([]lifecycle, error) {
	all := map[[3]string]lifecycle{}
	for _, r := range releases {
		dir, err := module("k8s.io/api@" + r.api)
		if err != nil {
			return nil, err
		}
		files, err := filepath.Glob(filepath.Join(dir, "*", "*", "zz_generated.prerelease-lifecycle.go"))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("k8s.io/api %s has no lifecycle files", r.api)
		}
		for _, file := range files {
			found, err := lifecycleFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, l := range found {
				id := [3]string{l.Group, l.Version, l.Kind}
				if _, newer := all[id]; !newer && !strings.HasSuffix(l.Kind, "List") {
					all[id] = l
				}
			}
		}
	}
	var out []lifecycle
	for _, l := range all {
		out = append(out, l)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		return less(kind{Group: a.Group, Version: a.Version, Kind: a.Kind}, kind{Group: b.Group, Version: b.Version, Kind: b.Kind})
	})
	return out, nil
}

func lifecycleFile(name string) ([]lifecycle, error) {
	group, err := groupName(filepath.Join(filepath.Dir(name), "register.go"))
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		return nil, err
	}
	by := map[string]*lifecycle{}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || len(f.Body.List) != 1 {
			continue
		}
		star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		ret, ok := f.Body.List[0].(*ast.ReturnStmt)
		if !ok {
			continue
		}
		k := star.X.(*ast.Ident).Name
		l := by[k]
		if l == nil {
			l = &lifecycle{Group: group, Version: filepath.Base(filepath.Dir(name)), Kind: k}
			by[k] = l
		}
		switch f.Name.Name {
		case "APILifecycleIntroduced":
			l.Introduced, err = minor(ret)
		case "APILifecycleDeprecated":
			l.Deprecated, err = minor(ret)
		case "APILifecycleRemoved":
			l.Removed, err = minor(ret)
		case "APILifecycleReplacement":
			l.Replacement, err = replacement(ret)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", k, f.Name.Name, err)
		}
	}
	var out []lifecycle
	for _, l := range by {
		out = append(out, *l)
	}
	return out, nil
}

// minor reads "return 1, 22".
func minor(ret *ast.ReturnStmt) (int, error) {
	if len(ret.Results) != 2 {
		return 0, fmt.Errorf("%d results where two are expected", len(ret.Results))
	}
	l, ok := ret.Results[1].(*ast.BasicLit)
	if !ok {
		return 0, fmt.Errorf("the minor is no literal")
	}
	return strconv.Atoi(l.Value)
}

// replacement reads "return schema.GroupVersionKind{Group: …, Version: …, Kind: …}".
func replacement(ret *ast.ReturnStmt) (string, error) {
	lit, ok := ret.Results[0].(*ast.CompositeLit)
	if !ok {
		return "", fmt.Errorf("the replacement is no literal")
	}
	at := map[string]string{}
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return "", fmt.Errorf("the replacement has no keys")
		}
		v, err := strconv.Unquote(kv.Value.(*ast.BasicLit).Value)
		if err != nil {
			return "", err
		}
		at[kv.Key.(*ast.Ident).Name] = v
	}
	return strings.TrimPrefix(at["Group"]+"/"+at["Version"], "/") + " " + at["Kind"], nil
}

// groupName reads the constant GroupName of register.go.
func groupName(name string) (string, error) {
	if _, err := os.Stat(name); err != nil {
		return "", err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		return "", err
	}
	for _, d := range parsed.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST && g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if v.Names[0].Name == "GroupName" && len(v.Values) == 1 {
				return strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			}
		}
	}
	return "", fmt.Errorf("no GroupName")
}
