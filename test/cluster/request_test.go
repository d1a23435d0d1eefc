package cluster

import (
	"net/http/httptest"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		method, target string
		want           request
	}{
		{"GET", "/apis/hecate.dev/v1alpha1/gates", request{verb: "list", resource: "gates"}},
		{"GET", "/apis/hecate.dev/v1alpha1/namespaces/a/gates?limit=500", request{verb: "list", resource: "gates"}},
		{"GET", "/apis/hecate.dev/v1alpha1/namespaces/a/gates?continue=x", request{verb: "list", resource: "gates", continued: true}},
		{"GET", "/apis/hecate.dev/v1alpha1/namespaces/a/gates/dev", request{verb: "get", resource: "gates"}},
		{"GET", "/apis/hecate.dev/v1alpha1/gates?watch=true", request{verb: "watch", resource: "gates"}},
		{"GET", "/apis/hecate.dev/v1alpha1/gates?watch=1&continue=x", request{verb: "watch", resource: "gates"}},
		{"PATCH", "/apis/hecate.dev/v1alpha1/namespaces/a/bundles/b/status", request{verb: "patch", resource: "bundles/status"}},
		{"POST", "/apis/hecate.dev/v1alpha1/namespaces/a/passages", request{verb: "create", resource: "passages"}},
		{"PUT", "/apis/hecate.dev/v1alpha1/namespaces/a/gates/dev", request{verb: "update", resource: "gates"}},
		{"DELETE", "/apis/hecate.dev/v1alpha1/namespaces/a/gates/dev", request{verb: "delete", resource: "gates"}},
		{"DELETE", "/apis/hecate.dev/v1alpha1/namespaces/a/gates", request{verb: "deletecollection", resource: "gates"}},
		{"GET", "/api/v1/namespaces", request{verb: "list", resource: "namespaces"}},
		{"GET", "/api/v1/namespaces/a", request{verb: "get", resource: "namespaces"}},
		{"PUT", "/api/v1/namespaces/a/status", request{verb: "update", resource: "namespaces/status"}},
		{"GET", "/api/v1/namespaces/a/secrets/fides", request{verb: "get", resource: "secrets"}},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", request{verb: "create", resource: "selfsubjectaccessreviews"}},
		{"GET", "/apis", request{verb: "get", resource: "/apis"}},
		{"GET", "/api/v1", request{verb: "get", resource: "/api/v1"}},
		{"GET", "/apis/hecate.dev/v1alpha1", request{verb: "get", resource: "/apis/hecate.dev/v1alpha1"}},
		{"GET", "/", request{verb: "get", resource: "/"}},
	} {
		if got := parse(httptest.NewRequest(tc.method, tc.target, nil)); got != tc.want {
			t.Errorf("%s %s: %+v, want %+v", tc.method, tc.target, got, tc.want)
		}
	}
}
