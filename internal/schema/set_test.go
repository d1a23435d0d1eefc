package schema

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// newest is the newest Set, opened once: tests only read it.
func newest(t testing.TB) *Set {
	t.Helper()
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decode(t testing.TB, doc string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// found is a violation as "Code Field severity".
func found(r Result) []string {
	out := []string{}
	for _, v := range r.Violations {
		out = append(out, v.Code+" "+v.Field+" "+v.Severity)
	}
	return out
}

func TestOpen(t *testing.T) {
	for _, v := range append(Versions(), "", "v1.35.2", "1.34.0-rc.1") {
		s, err := Open(Options{KubernetesVersion: v})
		if err != nil {
			t.Fatalf("%q: %v", v, err)
		}
		if s.Version() == "" || v != "" && !strings.Contains(v, s.Version()) || len(s.ID()) != 64 {
			t.Errorf("%q: version %q, id %q", v, s.Version(), s.ID())
		}
	}
	if got := newest(t).Version(); got != Versions()[0] {
		t.Errorf("the default is %s", got)
	}
	for _, v := range []string{"1.2", "2.35", "latest", "1", "v", "1.350"} {
		_, err := Open(Options{KubernetesVersion: v})
		var e *Error
		if !errors.As(err, &e) || !reflect.DeepEqual(e.Valid, Versions()) {
			t.Errorf("%q: %v", v, err)
		}
	}
}

// TestEverySchema walks every kind of every version with an object that is
// wrong, so that a schema that was lost would be seen.
func TestEverySchema(t *testing.T) {
	ids := map[string]bool{}
	for _, v := range Versions() {
		s, err := Open(Options{KubernetesVersion: v})
		if err != nil {
			t.Fatal(err)
		}
		ids[s.ID()] = true
		if len(s.kinds) < 80 {
			t.Errorf("%s: only %d kinds", v, len(s.kinds))
		}
		for id := range s.kinds {
			r := s.Validate(t.Context(), map[string]any{"apiVersion": id.apiVersion(), "kind": id.kind, "metadata": map[string]any{"name": "a", "namesapce": "b"}, "specX": 1}, nil)
			got := found(r)
			if !slices.Contains(got, "UnknownField /specX fail") || !slices.Contains(got, "UnknownField /metadata/namesapce fail") || !r.Covered || r.Authority != AuthorityCore {
				t.Errorf("%s %s: %v", v, id, got)
			}
		}
	}
	if len(ids) != len(Versions()) {
		t.Error("two versions have one ID")
	}
}

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app.kubernetes.io/name: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:
      volumes: [{name: data, emptyDir: {}}]
      initContainers: [{name: init, image: busybox}]
      containers:
      - name: web
        image: nginx:1.29
        ports: [{name: http, containerPort: 80}]
        env: [{name: A, value: "1"}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        resources: {requests: {cpu: 1, memory: 64Mi}, limits: {cpu: "2", memory: 1Gi}}
        volumeMounts: [{name: data, mountPath: /data}]
        livenessProbe: {httpGet: {path: /, port: http}}
`

// set returns a copy of an object with a value at a pointer; nil deletes it.
func set(t testing.TB, obj map[string]any, pointer string, value any) map[string]any {
	t.Helper()
	copied, err := deepCopy(obj, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := copied.(map[string]any)
	switch holder := Lookup(out, parent(pointer)).(type) {
	case map[string]any:
		if value == nil {
			delete(holder, lastKey(pointer))
		} else {
			holder[lastKey(pointer)] = value
		}
	case []any:
		holder[int(lastKey(pointer)[0]-'0')] = value
	default:
		t.Fatalf("nothing holds %s", pointer)
	}
	return out
}

func TestDeployment(t *testing.T) {
	s, base := newest(t), decode(t, deploymentYAML)
	const pod, web = "/spec/template/spec", "/spec/template/spec/containers/0"
	for _, c := range []struct {
		name, at string
		value    any
		want     []string
		says     string
	}{
		{"valid", "/metadata/name", "web", nil, ""},
		{"typo", web + "/imagePullPolciy", "Always", []string{"UnknownField " + web + "/imagePullPolciy fail"}, "dropped without a word; did you mean imagePullPolicy?"},
		{"typo at the top", "/specX", 1, []string{"UnknownField /specX fail"}, "dropped without a word; did you mean spec?"},
		{"null of an optional field", "/spec/paused", map[string]any(nil), []string{"WrongType /spec/paused fail"}, ""},
		{"required", "/spec/selector", nil, []string{"MissingField /spec/selector fail"}, "selector is required"},
		{"a number for a text", "/metadata/labels/app.kubernetes.io~1name", 1, []string{"WrongType /metadata/labels/app.kubernetes.io~1name fail"}, "put it in quotes"},
		{"a text for a number", "/spec/replicas", "2", []string{"WrongType /spec/replicas fail"}, "is a string where an integer is wanted"},
		{"a fraction", "/spec/replicas", 1.5, []string{"WrongType /spec/replicas fail"}, "fraction"},
		{"too large", "/spec/replicas", int64(1) << 40, []string{"InvalidValue /spec/replicas fail"}, "out of range"},
		{"negative", "/spec/replicas", -1, []string{"InvalidValue /spec/replicas fail"}, "0 or more"},
		{"an object for a list", web + "/env", map[string]any{}, []string{"WrongType " + web + "/env fail"}, "a list is wanted"},
		{"a number as cpu", web + "/resources/requests/cpu", 0.5, nil, ""},
		{"no quantity", web + "/resources/requests/cpu", "1 core", []string{"InvalidValue " + web + "/resources/requests/cpu fail"}, "like 500m"},
		{"more than the limit", web + "/resources/requests/memory", "2Gi", []string{"InvalidValue " + web + "/resources/requests/memory fail"}, "more than the limit of 1Gi"},
		{"no image", web + "/image", nil, []string{"MissingField " + web + "/image fail"}, ""},
		{"pull policy", web + "/imagePullPolicy", "always", []string{"InvalidValue " + web + "/imagePullPolicy fail"}, "did you mean Always?"},
		{"no such volume", web + "/volumeMounts/0/name", "date", []string{"InvalidValue " + web + "/volumeMounts/0/name fail"}, "Valid: data"},
		{"name of an init container", pod + "/initContainers/0/name", "web", []string{"InvalidValue " + web + "/name fail"}, ""},
		{"two containers of one name", pod + "/containers", []any{map[string]any{"name": "a", "image": "b"}, map[string]any{"name": "a", "image": "b"}},
			[]string{"InvalidValue " + pod + "/containers/1 fail"}, "the same name as item 0"},
		{"a variable twice", web + "/env/1/name", "A", []string{"InvalidValue " + web + "/env/1 fail"}, ""},
		{"a port's name", web + "/ports/0/name", "HTTP_PORT_OF_THE_WEB", []string{"InvalidValue " + web + "/ports/0/name fail"}, ""},
		{"a port", web + "/ports/0/containerPort", 80000, []string{"InvalidValue " + web + "/ports/0/containerPort fail"}, "65535"},
		{"a protocol", web + "/ports/0/protocol", "tcp", []string{"InvalidValue " + web + "/ports/0/protocol fail"}, "TCP"},
		{"selector", "/spec/template/metadata/labels/app", "api", []string{"InvalidValue /spec/template/metadata/labels fail"}, "spec.selector"},
		{"restart policy", pod + "/restartPolicy", "Never", []string{"InvalidValue " + pod + "/restartPolicy fail"}, "Valid: Always"},
		{"probe without a handler", web + "/livenessProbe/httpGet", nil, []string{"MissingField " + web + "/livenessProbe/httpGet fail"}, ""},
		{"name", "/metadata/name", "Web", []string{"InvalidValue /metadata/name fail"}, "lower case"},
		{"no name", "/metadata/name", nil, []string{"MissingField /metadata/name fail"}, ""},
		{"namespace", "/metadata/namespace", "a.b", []string{"InvalidValue /metadata/namespace fail"}, ""},
		{"label", "/metadata/labels/app.kubernetes.io~1name", "a b", []string{"InvalidValue /metadata/labels/app.kubernetes.io~1name fail"}, ""},
		{"two sources", pod + "/volumes/0/hostPath", map[string]any{"path": "/a"}, []string{"InvalidValue " + pod + "/volumes/0/hostPath fail"}, "emptyDir, hostPath"},
		{"kind", "/kind", "Deploymnet", []string{"UnknownKind /kind fail"}, "did you mean Deployment?"},
		{"kind of another group", "/apiVersion", "batch/v1", []string{"UnknownKind /apiVersion fail"}, "apps/v1"},
		{"version", "/apiVersion", "apps/v2", []string{"UnknownKind /apiVersion fail"}, "use apps/v1"},
		{"removed", "/apiVersion", "extensions/v1beta1", []string{"RemovedAPI /apiVersion fail"}, "1.16: use apps/v1 Deployment"},
		{"no kind", "/kind", nil, []string{"MissingField /kind fail"}, ""},
		{"kind of another type", "/kind", 7, []string{"WrongType /kind fail"}, ""},
		{"kind that leaves a folder", "/kind", "../../x", []string{"InvalidValue /kind fail"}, ""},
		{"apiVersion that leaves a folder", "/apiVersion", "../x/v1", []string{"InvalidValue /apiVersion fail"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := set(t, base, c.at, c.value)
			before, err := deepCopy(obj, 0)
			if err != nil {
				t.Fatal(err)
			}
			r := s.Validate(t.Context(), obj, nil)
			want := c.want
			if want == nil {
				want = []string{}
			}
			if got := found(r); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v\n%+v\nwant %v", got, r.Violations, want)
			}
			for _, v := range r.Violations {
				if c.says != "" && !strings.Contains(v.Message, c.says) {
					t.Errorf("%q does not say %q", v.Message, c.says)
				}
				if v.Rule == "" || v.Message == "" || r.Covered && (v.Authority == "" || v.SchemaID == "") {
					t.Errorf("incomplete: %+v", v)
				}
			}
			if after, _ := deepCopy(obj, 0); !reflect.DeepEqual(before, after) {
				t.Error("the object was changed")
			}
		})
	}
}

func TestNullsAreDropped(t *testing.T) {
	obj := decode(t, deploymentYAML)
	obj["status"] = nil
	sub(obj, "spec")["paused"] = nil
	sub(obj, "metadata")["creationTimestamp"] = nil
	if r := newest(t).Validate(t.Context(), obj, nil); len(r.Violations) > 0 {
		t.Errorf("%+v", r.Violations)
	}
	sub(obj, "spec")["selector"] = nil
	if got := found(newest(t).Validate(t.Context(), obj, nil)); !reflect.DeepEqual(got, []string{"MissingField /spec/selector fail"}) {
		t.Errorf("a required field that is null: %v", got)
	}
}

// TestSecrets holds that no value of a Secret is repeated.
func TestSecrets(t *testing.T) {
	const hush = "Hush Hush!"
	obj := map[string]any{"apiVersion": "v1", "kind": "Secret", "type": 7, "immutable": hush,
		"metadata":   map[string]any{"name": hush, "labels": map[string]any{"a": hush}, "creationTimestamp": hush},
		"data":       map[string]any{"token": hush, "no key": "aGk="},
		"stringData": map[string]any{"x": map[string]any{"y": hush}}}
	r := newest(t).Validate(t.Context(), obj, nil)
	if len(r.Violations) < 6 {
		t.Errorf("only %v", found(r))
	}
	for _, v := range r.Violations {
		if strings.Contains(v.Message+v.Rule+v.Raw, "Hush") {
			t.Errorf("a value is told: %+v", v)
		}
	}
	if !slices.Contains(found(r), "InvalidValue /data/token fail") {
		t.Errorf("base64: %v", found(r))
	}
}

func TestLifecycle(t *testing.T) {
	for _, c := range []struct{ version, apiVersion, kind, want, says string }{
		{"", "policy/v1beta1", "PodSecurityPolicy", "RemovedAPI /apiVersion fail", "1.25"},
		{"", "batch/v1beta1", "CronJob", "RemovedAPI /apiVersion fail", "use batch/v1 CronJob"},
		{"", "networking.k8s.io/v1beta1", "IngressClass", "RemovedAPI /apiVersion fail", "use networking.k8s.io/v1 IngressClass"},
		{"", "autoscaling/v2beta2", "HorizontalPodAutoscaler", "RemovedAPI /apiVersion fail", "1.26: use autoscaling/v2"},
		{"", "flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema", "RemovedAPI /apiVersion fail", "use flowcontrol.apiserver.k8s.io/v1 FlowSchema"},
		{"", "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "RemovedAPI /apiVersion fail", "apiextensions.k8s.io/v1"},
		{"", "storage.k8s.io/v1beta1", "CSIStorageCapacity", "RemovedAPI /apiVersion fail", "1.27"},
		{"", "v1", "Endpoints", "DeprecatedAPI /apiVersion warn", "EndpointSlice"},
		{"1.34", "storagemigration.k8s.io/v1beta1", "StorageVersionMigration", "UnknownKind /apiVersion fail", "from Kubernetes 1.35 on"},
		{"", "v1", "Pdo", "UnknownKind /kind fail", "did you mean Pod?"},
		{"", "policy/v1", "Eviction", "UnknownKind /kind fail", "that can be created"},
	} {
		s, err := Open(Options{KubernetesVersion: c.version})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Validate(t.Context(), map[string]any{"apiVersion": c.apiVersion, "kind": c.kind, "metadata": map[string]any{"name": "a"}}, nil)
		if got := found(r); !reflect.DeepEqual(got, []string{c.want}) || !strings.Contains(r.Violations[0].Message, c.says) {
			t.Errorf("%s %s: %+v", c.apiVersion, c.kind, r.Violations)
		}
	}
	if r := newest(t).Validate(t.Context(), map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}, nil); r.Covered || len(r.Violations) > 0 || r.Authority != "" {
		t.Errorf("a kind that nobody knows: %+v", r)
	}
	if r := newest(t).Validate(t.Context(), map[string]any{"apiVersion": "v1", "kind": "List"}, nil); r.Covered || len(r.Violations) > 0 {
		t.Errorf("a list: %+v", r)
	}
}

func TestBoundedOutput(t *testing.T) {
	obj := decode(t, deploymentYAML)
	for i := range 100000 {
		obj[strings.Repeat("x", 100)+string(rune('a'+i%26))+strings.Repeat("y", i%1000)] = i
	}
	r := newest(t).Validate(context.Background(), obj, nil)
	size := 0
	for _, v := range r.Violations {
		size += len(v.Message)
	}
	if len(r.Violations) > maxViolations || size > 64<<10 {
		t.Errorf("%d violations, %d bytes", len(r.Violations), size)
	}
}

// TestSpared: each spared field is one that some embedded schema requires.
func TestSpared(t *testing.T) {
	required := map[string]bool{}
	for _, v := range Versions() {
		var a archive
		if _, err := unpack(v, &a); err != nil {
			t.Fatal(err)
		}
		for name, d := range a.Definitions {
			for _, f := range d.Required {
				required[name+" "+f] = true
			}
		}
	}
	for name, fields := range spared {
		for _, f := range fields {
			if !required[name+" "+f] {
				t.Errorf("%s: no schema requires %s", name, f)
			}
		}
	}
}

// TestNamesOfTypes holds what is written by hand against the patterns that it stands for.
func TestNamesOfTypes(t *testing.T) {
	kind := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62}$`)
	version := regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[a-z][a-z0-9]{0,62}$`)
	check := func(s string) {
		t.Helper()
		if got, want := isKind(s), kind.MatchString(s); got != want {
			t.Errorf("kind %q: %v, want %v", s, got, want)
		}
		if got, want := isAPIVersion(s), version.MatchString(s); got != want {
			t.Errorf("apiVersion %q: %v, want %v", s, got, want)
		}
	}
	for n := range 260 {
		check(strings.Repeat("a", n))
		check(strings.Repeat("a", n) + "/v1")
		check("a/" + strings.Repeat("v", n))
	}
	letters := []string{"a", "z", "A", "Z", "0", "9", "/", ".", "-", "@", "[", "`", "{", ":", "é", " ", "\n"}
	var words func(s string, n int)
	words = func(s string, n int) {
		check(s)
		if n > 0 {
			for _, l := range letters {
				words(s+l, n-1)
			}
		}
	}
	words("", 4)
}
