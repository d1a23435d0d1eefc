package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// The canaries: none may leave in any form.
const (
	canaryData    = "canary-data-4c1f"
	canaryString  = "canary-string-9e2b"
	canaryVar     = "canary-variable-77aa"
	canaryGiven   = "canary-given-51d0"
	canaryFile    = "canary-file-8b3c"
	canaryLiteral = "canary-literal-60fe"
	canarySops    = "ENC[AES256_GCM,data:canarysops12,iv:x,tag:y,type:str]"
)

// leaky is a repository that puts secret values wherever a message could quote
// one: names, enums, types, patterns, broken documents, patches, generators.
var leaky = map[string]string{
	"clusters/c/flux-system/gotk-sync.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {interval: 1m, path: ./clusters/c, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n",
	"clusters/c/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: vars, namespace: flux-system}\ndata: {FROM_DATA: " + base64.StdEncoding.EncodeToString([]byte(canaryData)) + "}\nstringData: {FROM_STRING: " + canaryString + ", SECRET_VAR: " + canaryVar + "}\n" +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: broken, namespace: flux-system}\ntype: [" + canaryString + "]\ndata: {bad: '" + canaryData + " is no base64'}\nimmutable: " + canaryString + "\n",
	"clusters/c/sops.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: sops, namespace: flux-system}\ndata: {x: '" + canarySops + "'}\nsops: {mac: '" + canarySops + "', age: []}\n",
	"clusters/c/app.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\nspec:\n  interval: 1m\n  path: ./app\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n" +
		"  postBuild:\n    substituteFrom:\n    - {kind: Secret, name: vars}\n",
	"app/all.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '${SECRET_VAR}', labels: {x: '${FROM_DATA}!!'}}\nspec:\n  replicas: ${FROM_STRING}\n  ${FROM_DATA}: unknown\n  selector: {matchLabels: {a: '${SECRET_VAR}'}}\n  template:\n    metadata: {labels: {a: other}}\n    spec:\n      restartPolicy: ${FROM_STRING}\n      containers:\n      - name: '${FROM_DATA} ${GIVEN}'\n        image: x\n        imagePullPolicy: ${GIVEN}\n        resources: {limits: {cpu: '${SECRET_VAR}'}}\n        ports: [{containerPort: ${FROM_STRING}, protocol: ${FROM_DATA}}]\n" +
		"---\napiVersion: example.com/v1\nkind: Odd\nmetadata: {name: odd}\nspec: {mode: '${SECRET_VAR}', code: '${FROM_STRING}', n: '${FROM_DATA}'}\n",
	"app/crd.yaml":                      "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: odds.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Odd, plural: odds}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n              mode: {type: string, enum: [a, b]}\n              code: {type: string, pattern: '^[0-9]+$'}\n              n: {type: integer}\n            x-kubernetes-validations:\n            - {rule: \"self.mode == 'a'\", messageExpression: \"'mode is ' + self.mode\"}\n",
	"clusters/c/broken.yaml":            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: broken, namespace: flux-system}\nspec: {interval: 1m, path: ./broken, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n",
	"broken/kustomization.yaml":         "resources: [s.yaml]\nsecretGenerator:\n- {name: g, literals: ['" + canaryLiteral + "'], files: [f.txt]}\npatches:\n- target: {kind: Secret}\n  patch: |\n    - {op: test, path: /stringData/p, value: " + canaryFile + "}\n",
	"broken/s.yaml":                     "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: " + canaryString + "}\n",
	"broken/f.txt":                      canaryFile + "\n",
	"clusters/c/malformed.yaml":         "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: malformed, namespace: flux-system}\nspec: {interval: 1m, path: ./malformed, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n",
	"malformed/s.yaml":                  "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  p: " + canaryString + "\n  *" + canaryFile + "\n  p: [" + canaryLiteral + "\n",
	"clusters/c/substitution.yaml":      "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: substitution, namespace: flux-system}\nspec:\n  interval: 1m\n  path: ./substitution\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n",
	"substitution/kustomization.yaml":   "resources: [a.yaml]\n",
	"substitution/a.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: \"${SECRET_VAR/canary/[}\"\n  y: \"${FROM_STRING\"\n",
	"clusters/c/path.yaml":              "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: parent, namespace: flux-system}\nspec:\n  interval: 1m\n  path: ./parent\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n",
	"parent/kustomization.yaml":         "resources: [ks.yaml]\n",
	"parent/ks.yaml":                    "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: '${SECRET_VAR}', namespace: flux-system}\nspec:\n  interval: 1m\n  path: ./${FROM_STRING}\n  prune: true\n  dependsOn: [{name: '${FROM_DATA}'}]\n  sourceRef: {kind: GitRepository, name: '${SECRET_VAR}'}\n",
	"clusters/c/flux-system/README.txt": "nothing\n",
}

func TestNoSecretLeaves(t *testing.T) {
	dir := t.TempDir()
	for name, text := range leaky {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gitInit(t, dir)
	engine, err := gitops.New(gitops.Options{Builder: render.NewLocal()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	env := demoEnv(t)
	env.GitOps, env.Repositories = engine, []Repository{{Name: "leaky", Path: dir}}
	env.RepoConfig = gitops.Config{Vars: map[string]string{"GIVEN": canaryGiven}}
	// A change that moves every value about.
	if err := os.WriteFile(filepath.Join(dir, "clusters/c/secret.yaml"), []byte(strings.ReplaceAll(leaky["clusters/c/secret.yaml"], "canary", "kanari")), 0o644); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, tool := range []Tool{getFluxGraph, validateManifests, computeImpact} {
		for _, args := range []string{`{}`, `{"format":"detailed","limit":200}`, `{"ref":"HEAD","format":"detailed","limit":200}`, `{"severity":"pass","format":"detailed","limit":200}`, `{"cluster":"` + canaryString + `"}`} {
			if strings.Contains(args, "severity") && tool.Name != "validate_manifests" || strings.Contains(args, `"ref"`) && tool.Name == "compute_impact" {
				continue
			}
			a := tool.Call(context.Background(), env, json.RawMessage(args))
			var text bytes.Buffer
			if a.Err == nil {
				if err := tool.Text(NewWriter(&text, false), a); err != nil {
					t.Fatal(err)
				}
				var out struct{ Total int }
				if err := json.Unmarshal(a.JSON, &out); err != nil {
					t.Fatal(err)
				}
				found += out.Total
			} else if !strings.Contains(args, "cluster") {
				t.Fatalf("%s %s: %v", tool.Name, args, a.Err)
			} else {
				continue // an argument may be quoted to its caller
			}
			for _, c := range []string{"canary", "kanari", canarySops, base64.StdEncoding.EncodeToString([]byte(canaryData))} {
				for form, s := range map[string]string{"JSON": string(a.JSON), "text": text.String()} {
					if i := strings.Index(s, c); i >= 0 {
						t.Errorf("%s %s: the %s holds %q: …%s…", tool.Name, args, form, c, s[max(0, i-120):min(len(s), i+60)])
					}
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d findings and rows: the repository is not as broken as it should be", found)
	}
}

// gitInit commits a folder.
func gitInit(t *testing.T, dir string) {
	t.Helper()
	repo, err := git.PlainInitWithOptions(dir, &git.PlainInitOptions{InitOptions: git.InitOptions{DefaultBranch: plumbing.Main}})
	if err != nil {
		t.Fatal(err)
	}
	work, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := work.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := work.Commit("all", &git.CommitOptions{Author: &object.Signature{Name: "test", Email: "test@example.com", When: time.Unix(1_700_000_000, 0)}}); err != nil {
		t.Fatal(err)
	}
}
