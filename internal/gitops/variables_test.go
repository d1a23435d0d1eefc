package gitops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// values is a ConfigMap or Secret with variables, in flux-system.
func values(kind, name string, lines ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: flux-system}\n%s\n", kind, name, strings.Join(lines, "\n"))
}

func TestVariables(t *testing.T) {
	for _, tc := range []struct {
		name   string
		build  string // postBuild of app
		more   files
		object string
		want   []string
		state  gitops.State
	}{
		// As in the cluster: the object is written without the quotes it had, so a number comes out.
		{"inline", "{substitute: {A: one, B: \"2\"}}", nil, cm("c", "a: ${A}", "b: \"${B}\""), []string{`"a":"one"`, `"b":2`}, ""},
		{"a number keeps its form", "{substitute: {A: \"2\"}}", nil, cm("c", "a: n-${A}"), []string{`"a":"n-2"`}, ""},
		{"unset is empty", "{substitute: {A: one}}", nil, cm("c", "a: \"${A}\"", "b: \"[${NOBODY}]\""), []string{`"b":"[]"`}, ""},
		{"a default", "{substitute: {A: one}}", nil, cm("c", "a: ${B:=two}", "b: ${A:=two}"), []string{`"a":"two"`, `"b":"one"`}, ""},
		{"nothing to substitute leaves dollars", "{substitute: {}}", nil, cm("c", "a: ${A}"), []string{`"a":"${A}"`}, ""},
		{"disabled by an annotation", "{substitute: {A: one}}", nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\ndata: {a: \"${A}\"}\n", []string{`"a":"${A}"`}, ""},
		{"newlines go", "{substituteFrom: [{kind: ConfigMap, name: v}]}", files{"clusters/prod/v.yaml": values("ConfigMap", "v", "data:", "  A: |", "    one", "    two")}, cm("c", "a: ${A}"), []string{`"a":"onetwo"`}, ""},
		{"a date is text", "{substituteFrom: [{kind: ConfigMap, name: v}]}", files{"manual/v.yaml": values("ConfigMap", "v", "data: {A: 2026-01-02}")}, cm("c", "a: \"${A}\""), []string{`"a":"2026-01-02"`}, ""},
		{"from a Secret in base64", "{substituteFrom: [{kind: Secret, name: v}]}", files{"clusters/prod/v.yaml": values("Secret", "v", "data: {A: b25l}")}, cm("c", "a: ${A}"), []string{`"a":"one"`}, ""},
		{"from a file that nothing renders", "{substituteFrom: [{kind: ConfigMap, name: v}]}", files{"manual/v.yaml": values("ConfigMap", "v", "data: {A: one}")}, cm("c", "a: ${A}"), []string{`"a":"one"`}, ""},
		{"of two such files that differ none", "{substituteFrom: [{kind: ConfigMap, name: v}]}", files{"manual/v.yaml": values("ConfigMap", "v", "data: {A: one}"), "manual/w.yaml": values("ConfigMap", "v", "data: {A: two}")}, cm("c", "a: ${A}"), nil, gitops.StatePartial},
		{"of two the rendered one", "{substituteFrom: [{kind: ConfigMap, name: v}]}", files{"manual/v.yaml": values("ConfigMap", "v", "data: {A: one}"), "clusters/prod/w.yaml": values("ConfigMap", "v", "data: {A: two}")}, cm("c", "a: ${A}"), []string{`"a":"two"`}, ""},
		{"another kind of that name", "{substituteFrom: [{kind: ConfigMap, name: v}]}", files{"clusters/prod/v.yaml": values("Secret", "v", "stringData: {A: one}")}, cm("c", "a: ${A}"), nil, gitops.StatePartial},
		{"another namespace", "{substituteFrom: [{kind: ConfigMap, name: v}]}", files{"clusters/prod/v.yaml": strings.Replace(values("ConfigMap", "v", "data: {A: one}"), "flux-system", "default", 1)}, cm("c", "a: ${A}"), nil, gitops.StatePartial},
		{"an optional one that is missing", "{substitute: {B: two}, substituteFrom: [{kind: ConfigMap, name: v, optional: true}]}", nil, cm("c", "b: ${B}"), []string{`"b":"two"`}, gitops.StateRendered},
		{"inline wins over unknown ones", "{substitute: {A: one}, substituteFrom: [{kind: ConfigMap, name: v}]}", nil, cm("c", "a: ${A}"), []string{`"a":"one"`}, gitops.StateRendered},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := graphOf(t, prod(files{"clusters/prod/app.yaml": ks("app", "./app", "postBuild: "+tc.build), "app/o.yaml": tc.object}, tc.more))
			wantRendered(t, g, "app", tc.want...)
			if tc.state == "" {
				tc.state = gitops.StateRendered
			}
			wantState(t, g, "app", tc.state)
			wantNoFailure(t, g.Findings)
		})
	}
}

// Each cluster has its own values, also where their names are the same.
func TestVariablesByCluster(t *testing.T) {
	f := files{}
	for _, c := range []string{"prod", "stage"} {
		f = f.with(bootstrapped("clusters/"+c), files{
			"clusters/" + c + "/all.yaml": docs(ks("app", "./app", "postBuild: {substituteFrom: [{kind: ConfigMap, name: v}]}"), values("ConfigMap", "v", "data: {A: "+c+"}")),
		})
	}
	f["app/cm.yaml"] = cm("c", "a: ${A}")
	g := graphOf(t, f)
	wantRendered(t, g, "app", `"a":"prod"`)
	wantRendered(t, g, "stage/app", `"a":"stage"`)
	r := impactOf(t, f, files{"clusters/stage/all.yaml": strings.Replace(f["clusters/stage/all.yaml"], "{A: stage}", "{A: other}", 1)})
	wantAffected(t, r, "stage/app changed", "stage/flux-system changed")

	// A file that one cluster's folder has is not another cluster's.
	delete(f, "clusters/prod/all.yaml")
	f["clusters/prod/app.yaml"] = ks("app", "./app", "postBuild: {substituteFrom: [{kind: ConfigMap, name: v}]}")
	f["clusters/prod/kustomization.yaml"] = kfile(resources("flux-system/gotk-sync.yaml", "app.yaml"))
	f["clusters/prod/v.yaml"] = values("ConfigMap", "v", "data: {A: unlisted}")
	wantRendered(t, graphOf(t, f), "app", `"a":"unlisted"`)
}

func TestVariableFindings(t *testing.T) {
	f := prod(files{
		"clusters/prod/app.yaml": ks("app", "./app", "postBuild:", "  substitute: {A: one}", "  substituteFrom: [{kind: ConfigMap, name: gone}]"),
		"app/cm.yaml":            cm("c", "a: ${A}", "b: ${B}", "path: /${C}/x"),
	})
	g := graphOf(t, f)
	x := wantFinding(t, g.Findings, gitops.UnresolvedVariable, "gone", "B", "C", "--vars")
	if x.Severity != gitops.SeverityWarn || x.File != "clusters/prod/app.yaml" || x.Object == nil || x.Object.Name != "gone" {
		t.Errorf("%+v", x)
	}
	if l := strings.Split(f["clusters/prod/app.yaml"], "\n")[x.Line-1]; !strings.Contains(l, "gone") {
		t.Errorf("line %d is %q", x.Line, l)
	}
	t.Run("a name that nobody sets", func(t *testing.T) {
		g := graphOf(t, f.with(files{"clusters/prod/app.yaml": ks("app", "./app", "postBuild: {substitute: {A: one}}")}))
		x := wantFinding(t, g.Findings, gitops.UnresolvedVariable, "B", "C", "empty")
		if x.Severity != gitops.SeverityWarn {
			t.Errorf("%+v", x)
		}
	})
	for name, tc := range map[string]struct {
		object string
		want   gitops.Severity
		words  string
	}{
		"strict by its image":        {controller("ghcr.io/fluxcd/kustomize-controller:v1.9.6", ""), gitops.SeverityFail, "fails for it"},
		"by image and digest":        {controller("registry.example.com/flux/kustomize-controller:v1.10.0@sha256:abc", ""), gitops.SeverityFail, "fails for it"},
		"before":                     {controller("ghcr.io/fluxcd/kustomize-controller:v1.8.3", ""), gitops.SeverityWarn, "empty text"},
		"before, with the gate":      {controller("ghcr.io/fluxcd/kustomize-controller:v1.8.3", "--feature-gates=A=false,StrictPostBuildSubstitutions=true"), gitops.SeverityFail, "fails for it"},
		"strict, without the gate":   {controller("ghcr.io/fluxcd/kustomize-controller:v1.9.6", "--feature-gates=StrictPostBuildSubstitutions=false"), gitops.SeverityWarn, "empty text"},
		"an image without a version": {controller("ghcr.io/fluxcd/kustomize-controller:main", ""), gitops.SeverityWarn, "2.9 and later fail"},
		"an instance of the newest":  {fluxOf("2.x"), gitops.SeverityFail, "fails for it"},
		"an instance of a minor":     {fluxOf("2.8.x"), gitops.SeverityWarn, "empty text"},
		"an instance of a range":     {fluxOf(">=2.3.0 <3.0.0"), gitops.SeverityWarn, "2.9 and later fail"},
	} {
		t.Run(name, func(t *testing.T) {
			g := graphOf(t, f.with(files{"clusters/prod/app.yaml": ks("app", "./app", "postBuild: {substitute: {A: one}}"), "clusters/prod/flux.yaml": tc.object}))
			x := wantFinding(t, g.Findings, gitops.UnresolvedVariable, "B", "C", tc.words)
			if x.Severity != tc.want {
				t.Errorf("%+v", x)
			}
		})
	}
	t.Run("a malformed expression", func(t *testing.T) {
		g := graphOf(t, f.with(files{"clusters/prod/app.yaml": ks("app", "./app", "postBuild: {substitute: {A: one}}"), "app/cm.yaml": cm("c", "a: \"${A\"")}))
		wantState(t, g, "app", gitops.StateFailed)
		x := wantFinding(t, g.Findings, gitops.RenderFailed)
		if x.File != "app/cm.yaml" || x.Severity != gitops.SeverityFail {
			t.Errorf("%+v", x)
		}
	})
	t.Run("a name that is not allowed", func(t *testing.T) {
		g := graphOf(t, f.with(files{"clusters/prod/app.yaml": ks("app", "./app", "postBuild: {substitute: {a.b: one}}")}))
		wantState(t, g, "app", gitops.StateFailed)
	})
}

// TestQuotedVariable gives the advice that helps: quotes in the manifest are lost before a variable is put in.
func TestQuotedVariable(t *testing.T) {
	f := prod(files{
		"clusters/prod/app.yaml": ks("app", "./app", "postBuild: {substitute: {COUNT: '2', QUOTED: '\"2\"'}}"),
		"app/cm.yaml":            cm("c", "a: \"${COUNT}\"", "c: ${QUOTED}", "d: 3"),
	})
	v := validate(t, f)
	fields := map[string]string{}
	for _, x := range v.Findings {
		fields[x.Field] = string(x.Code) + " " + x.Message
	}
	for field, want := range map[string]string{"/data/a": "WrongType is an integer where a string is wanted: the build drops quotes around a variable", "/data/d": "WrongType is an integer where a string is wanted: put it in quotes"} {
		if !strings.HasPrefix(fields[field], want) {
			t.Errorf("%s: %q, want %q", field, fields[field], want)
		}
	}
	if got, ok := fields["/data/c"]; ok {
		t.Errorf("the advice does not help: %s", got)
	}
	wantRendered(t, v.Graph, "app", `"c":"2"`)
}

// TestMissingUnderRemote: a component that is left out may bring what is missing, a resource may not.
func TestMissingUnderRemote(t *testing.T) {
	const remote = "'https://git.example.com/shop/shared.git//x?ref=v1'"
	for field, want := range map[string]gitops.Code{"components": gitops.Unverifiable, "resources": gitops.MissingField} {
		k := "resources: [cm.yaml]\ncomponents: [" + remote + "]\n"
		if field == "resources" {
			k = "resources: [cm.yaml, " + remote + "]\n"
		}
		v := validate(t, prod(files{"clusters/prod/app.yaml": ks("app", "./app"), "app/kustomization.yaml": k,
			"app/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"}))
		var got []gitops.Finding
		for _, f := range v.Findings {
			if f.Field == "/metadata/namespace" {
				got = append(got, f)
			}
		}
		if len(got) != 1 || got[0].Code != want || (got[0].Severity == gitops.SeverityFail) != (field == "resources") {
			t.Errorf("%s: %+v, want %s", field, got, want)
		}
	}
}

// controller is a Deployment of kustomize-controller.
func controller(image, arg string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kustomize-controller, namespace: flux-system}\nspec:\n  selector: {matchLabels: {app: k}}\n  template:\n    metadata: {labels: {app: k}}\n" +
		"    spec: {containers: [{name: manager, image: \"" + image + "\", args: [\"" + arg + "\"]}]}\n"
}

func fluxOf(version string) string {
	return "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {distribution: {version: \"" + version + "\", registry: ghcr.io/fluxcd}}\n"
}
