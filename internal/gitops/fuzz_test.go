package gitops_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// FuzzDiscover reads repositories of two files, a document of Flux and a
// kustomization, beside a sound cluster that must come out the same whatever they
// hold. Values of Secrets never come out.
func FuzzDiscover(f *testing.F) {
	doc := ks("other", "./other", "dependsOn: [{name: app}]", "postBuild: {substitute: {A: b}, substituteFrom: [{kind: ConfigMap, name: v}]}", "patches: [{patch: '[{\"op\": \"add\", \"path\": \"/x\", \"value\": 1}]', target: {kind: ConfigMap}}]")
	for _, flux := range []string{"", doc, docs(doc, doc), strings.Replace(doc, "./other", "./", 1), strings.Replace(doc, "./other", "/../${A}", 1), strings.Replace(doc, "name: other", "name: app", 1),
		instance, values("ConfigMap", "v", "data: {A: one}"), gitRepo("flux-system", "other", "git@git.example.com:acme/fleet"), generator("g", "{alias: r, kind: GitRepository, name: flux-system}", artifact("a", "{from: '@r/app/**', to: '@artifact/'}")), "a: [", "\xff", "- - -", bomb()} {
		f.Add(flux, kfile(resources("k.yaml"), "namePrefix: x-"))
		f.Add(flux, "")
	}
	for _, k := range []string{kfile(resources("../app", ".", "https://example.com/x")), kfile("configMapGenerator: [{name: a, literals: [a=b]}]"), kfile("openapi: {path: k.yaml}"), kfile("components: [../other]"), kfile("patches: [{path: k.yaml}]"), kfile("resources: 5"), "[]", "resources: [{}]"} {
		f.Add(doc, k)
	}
	e, err := gitops.New(gitops.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := e.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, flux, kustomization string) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		dir := folder(t, app)
		// An empty content would take the file away.
		put(t, dir, files{"other/k.yaml": flux + "\n", "other/kustomization.yaml": kustomization + "\n"})
		v, err := e.ValidateManifests(ctx, gitops.Repo{Path: dir}, gitops.ValidateOptions{})
		if err != nil {
			var coded *gitops.Error
			if !errors.As(err, &coded) {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		wantState(t, v.Graph, "app", gitops.StateRendered)
		again, err := e.ValidateManifests(ctx, gitops.Repo{Path: dir}, gitops.ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(v.Findings, again.Findings) || !reflect.DeepEqual(v.Graph.Keys(), again.Graph.Keys()) {
			t.Errorf("the second answer differs: %v%s, first %v%s", again.Graph.Keys(), lines(again.Findings), v.Graph.Keys(), lines(v.Findings))
		}
		for _, x := range v.Findings {
			if strings.Contains(x.Message+x.Raw, dir) {
				t.Errorf("a path of this machine in %+v", x)
			}
		}
	})
}

// FuzzConfig wants a configuration or a coded error that quotes no value.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{"", "vars: {A: hunter2}", "roots: [{cluster: a, path: b, vars: {A: hunter2}}]", "vars: hunter2", "sources: [hunter2]", "vars: {A: `hunter2`}", "vars: &a {b: *a}", "vars: {A: !!int hunter2}", "? [a]\n: b", "\xff", bomb()} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := gitops.ParseConfig(data)
		var coded *gitops.Error
		if err != nil && (!errors.As(err, &coded) || coded.Code != gitops.ErrInvalidConfig || len(coded.Valid) == 0) {
			t.Fatalf("error %v", err)
		}
		for i, r := range c.Roots {
			if r.Cluster == "" || r.Path == "" {
				t.Errorf("root %d is %+v", i, r)
			}
		}
	})
}
