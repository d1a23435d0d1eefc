package fleet

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// Kustomizations is how many Flux Kustomizations the repository has.
const Kustomizations = 150

// clusters are the clusters of the repository; each has the same apps.
var clusters = []string{"production", "staging"}

// perCluster are the Kustomizations of a cluster that are no apps: the root, the
// infrastructure and the one that renders those of the apps.
const perCluster = 7

// chain is how many apps wait for each other, one after the other.
const chain = 4

// shape holds the files of the repository as templates: a folder a part, in it
// the paths below that part's folder.
//
//go:embed all:shape
var shape embed.FS

// app is one app of the fleet.
type app struct {
	Name, Namespace string
	// After is the Kustomization that it waits for.
	After string
	// Chart: a HelmRelease instead of a Deployment. Job: with a CronJob. Scaled:
	// with an autoscaler and a disruption budget.
	Chart, Job, Scaled bool
	Number, Port       int
}

// Write writes the repository into an empty folder. It is the same each time.
func Write(dir string) error {
	w := writer{dir: dir}
	w.part("infrastructure", "infrastructure", nil)
	w.part("components", "components", nil)
	apps := apps()
	for _, c := range clusters {
		data := map[string]any{"Cluster": c, "Apps": apps, "Production": c == "production"}
		w.part("cluster", "clusters/"+c, data)
		w.part("apps", "apps/"+c, data)
	}
	for _, a := range apps {
		base := "service"
		if a.Chart {
			base = "chart"
		}
		w.part(base, "deploy/"+a.Name+"/base", a)
		for _, c := range clusters {
			data := map[string]any{"App": a, "Cluster": c, "Production": c == "production"}
			w.part("kustomization", "apps/"+c+"/"+a.Name, data)
			w.part("overlay-"+base, "deploy/"+a.Name+"/overlays/"+c, data)
		}
	}
	return w.err
}

func apps() []app {
	var out []app
	for i := range Kustomizations/len(clusters) - perCluster {
		a := app{Name: fmt.Sprintf("app-%02d", i), Namespace: fmt.Sprintf("team-%d", i/chain%10), Number: i, Port: 8000 + i,
			After: "controllers", Chart: i%5 == 4, Job: i%3 == 0, Scaled: i%2 == 0}
		if i%chain > 0 {
			a.After = out[i-1].Name
		}
		out = append(out, a)
	}
	return out
}

// writer writes parts until one fails.
type writer struct {
	dir string
	err error
}

// part writes the templates of a part below a folder.
func (w *writer) part(part, folder string, data any) {
	if w.err != nil {
		return
	}
	root := "shape/" + part
	w.err = fs.WalkDir(shape, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		t, err := template.ParseFS(shape, name)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, data); err != nil {
			return err
		}
		to := filepath.Join(w.dir, filepath.FromSlash(folder), filepath.FromSlash(strings.TrimPrefix(name, root)))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, out.Bytes(), 0o644)
	})
}
