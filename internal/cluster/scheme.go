package cluster

import (
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Scheme returns the Go types that clients of this package read typed: the
// four kinds of Hecate, and Secret, ConfigMap, Namespace and the two reviews
// of a user's own identity and rights. Every other kind is unstructured.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(s))
	s.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Secret{}, &corev1.SecretList{},
		&corev1.ConfigMap{}, &corev1.ConfigMapList{},
		&corev1.Namespace{}, &corev1.NamespaceList{})
	s.AddKnownTypes(authenticationv1.SchemeGroupVersion, &authenticationv1.SelfSubjectReview{})
	s.AddKnownTypes(authorizationv1.SchemeGroupVersion, &authorizationv1.SelfSubjectAccessReview{})
	for _, gv := range []schema.GroupVersion{
		corev1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion,
	} {
		metav1.AddToGroupVersion(s, gv)
	}
	return s
})

// knownKind is a kind that a live client can address. Every API server serves
// the builtin ones.
type knownKind struct {
	group, version, kind, plural string
	scope                        meta.RESTScope
	builtin                      bool
}

// known is every kind that a live client can address. A fixed table instead
// of discovery: discovery is dozens of requests before the first answer, fails
// as a whole when one aggregated API is down, and a kind that is missing in
// the cluster shows itself as well by the 404 of its own LIST.
var known = []knownKind{
	{"hecate.dev", "v1alpha1", "Beacon", "beacons", meta.RESTScopeNamespace, false},
	{"hecate.dev", "v1alpha1", "Bundle", "bundles", meta.RESTScopeNamespace, false},
	{"hecate.dev", "v1alpha1", "Gate", "gates", meta.RESTScopeNamespace, false},
	{"hecate.dev", "v1alpha1", "Passage", "passages", meta.RESTScopeNamespace, false},
	{"kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations", meta.RESTScopeNamespace, false},
	{"helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases", meta.RESTScopeNamespace, false},
	{"source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories", meta.RESTScopeNamespace, false},
	{"source.toolkit.fluxcd.io", "v1", "OCIRepository", "ocirepositories", meta.RESTScopeNamespace, false},
	{"source.toolkit.fluxcd.io", "v1", "HelmChart", "helmcharts", meta.RESTScopeNamespace, false},
	{"source.toolkit.fluxcd.io", "v1", "HelmRepository", "helmrepositories", meta.RESTScopeNamespace, false},
	{"source.toolkit.fluxcd.io", "v1", "Bucket", "buckets", meta.RESTScopeNamespace, false},
	{"flagger.app", "v1beta1", "Canary", "canaries", meta.RESTScopeNamespace, false},
	{"", "v1", "Secret", "secrets", meta.RESTScopeNamespace, true},
	{"", "v1", "ConfigMap", "configmaps", meta.RESTScopeNamespace, true},
	{"", "v1", "Namespace", "namespaces", meta.RESTScopeRoot, true},
	{"authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", meta.RESTScopeRoot, true},
	{"authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", meta.RESTScopeRoot, true},
}

// mapper returns the RESTMapper over the table of known kinds.
var mapper = sync.OnceValue(func() meta.RESTMapper {
	var versions []schema.GroupVersion // preferred where a question names none
	for _, k := range known {
		versions = append(versions, schema.GroupVersion{Group: k.group, Version: k.version})
	}
	m := meta.NewDefaultRESTMapper(versions)
	for _, k := range known {
		gv := schema.GroupVersion{Group: k.group, Version: k.version}
		plural := gv.WithResource(k.plural)
		m.AddSpecific(gv.WithKind(k.kind), plural, plural, k.scope)
	}
	return m
})

// lookup returns what the table says about a kind.
func lookup(gk schema.GroupKind) (knownKind, bool) {
	for _, k := range known {
		if k.group == gk.Group && k.kind == gk.Kind {
			return k, true
		}
	}
	return knownKind{}, false
}
