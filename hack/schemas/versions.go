package main

// A release of Kubernetes: the module whose OpenAPI is read, and the module
// that knows when APIs end.
type release struct {
	minor      string
	kubernetes string
	api        string
}

// releases are the newest first: where two tell of one API, the newest is right.
var releases = []release{
	{"1.36", "v1.36.3", "v0.36.3"},
	{"1.35", "v1.35.4", "v0.35.4"},
	{"1.34", "v1.34.4", "v0.34.4"},
}

// controllers publish their CRDs as YAML in config/crd/bases. These are the
// newest that build with the Go of this module.
var controllers = []string{
	"github.com/fluxcd/kustomize-controller@v1.9.5",
	"github.com/fluxcd/source-controller@v1.9.5",
	"github.com/fluxcd/helm-controller@v1.6.4",
}
