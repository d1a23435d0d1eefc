// Command schemas writes the archives that internal/schema embeds: the schemas
// and the lifecycle of the built-in kinds of three Kubernetes minors, and the
// CRDs of Flux.
//
// It reads Go modules only: the OpenAPI documents of k8s.io/kubernetes, the
// generated lifecycle methods of k8s.io/api, the CRDs of Flux's controllers
// and, where a controller's module is not published, what controller-gen makes
// of its API types. The same versions give the same bytes. It runs in the folder
// of this file and needs the module proxy or a filled module cache.
package main
