package schema

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	kruntime "k8s.io/apimachinery/pkg/runtime"
)

const (
	maxCRD      = 3 << 20 // bytes; an API server takes no larger request
	maxCompiled = 512     // CRDs kept by content
)

// CRDs are the custom kinds of one cluster. Nil is none.
type CRDs struct {
	by map[groupKind]*crd
}

type groupKind struct{ group, kind string }

func (c *CRDs) definition(group, kind string) *crd {
	if c == nil {
		return nil
	}
	return c.by[groupKind{group, kind}]
}

// CRDProblem is why an API server would refuse a CRD.
type CRDProblem struct {
	Name    string
	Code    string // as of a Violation
	Field   string // JSON pointer into the CRD
	Message string
}

// compilations keeps CRDs by content: most runs bring the same ones.
type compilations struct {
	mu    sync.Mutex
	by    map[[32]byte]*list.Element
	order *list.List // of *crd, the last used first
}

func newCompilations() *compilations {
	return &compilations{by: map[[32]byte]*list.Element{}, order: list.New()}
}

// get is the CRD of a content, made when it is new.
func (c *compilations) get(sum [32]byte, fresh func() *crd) *crd {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[sum]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*crd)
	}
	d := fresh()
	d.sum = sum
	c.by[sum] = c.order.PushFront(d)
	if c.order.Len() > maxCompiled {
		last := c.order.Back()
		delete(c.by, last.Value.(*crd).sum)
		c.order.Remove(last)
	}
	return d
}

// NewCRDs gathers the CRDs among objects (others are passed over; of two for one
// kind the first counts) and says what is wrong with them. One that is wrong
// still judges objects where it can. Checked and compiled CRDs are kept in the
// Set by content.
func (s *Set) NewCRDs(objs []map[string]any) (*CRDs, []CRDProblem) {
	out := &CRDs{by: map[groupKind]*crd{}}
	var all []*crd
	var problems []CRDProblem
	for _, obj := range objs {
		if obj["kind"] != "CustomResourceDefinition" || obj["apiVersion"] != "apiextensions.k8s.io/v1" {
			continue
		}
		name, _ := Lookup(obj, "/metadata/name").(string)
		group, _ := Lookup(obj, "/spec/group").(string)
		kind, _ := Lookup(obj, "/spec/names/kind").(string)
		raw, err := json.Marshal(obj)
		if err != nil {
			problems = append(problems, CRDProblem{Name: name, Code: InvalidValue, Message: "can't be written as JSON: " + err.Error()})
			continue
		}
		if len(raw) > maxCRD {
			problems = append(problems, CRDProblem{Name: name, Code: InvalidValue, Message: fmt.Sprintf("is %d bytes large: an API server takes %d", len(raw), maxCRD)})
			continue
		}
		d := s.compiled.get(sha256.Sum256(raw), func() *crd {
			return &crd{name: name, raw: raw}
		})
		all = append(all, d)
		id := groupKind{group, kind}
		if group != "" && kind != "" && out.by[id] == nil {
			out.by[id] = d
		}
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, d := range all {
		group.Go(func() error {
			d.check()
			return nil
		})
	}
	_ = group.Wait() // no task fails: what is wrong is in the problems
	for _, d := range all {
		problems = append(problems, d.problems...)
	}
	return out, problems
}

// FluxCRDs are the embedded CRDs of Flux, each as its v1 object.
func FluxCRDs() ([]map[string]any, error) {
	var f fluxArchive
	if _, err := unpack("flux", &f); err != nil {
		return nil, err
	}
	return f.CRDs, nil
}

// embedded are the CRDs in the binary: they are checked by a test.
func (s *Set) embedded(f fluxArchive) (*CRDs, error) {
	out := &CRDs{by: map[groupKind]*crd{}}
	for _, obj := range f.CRDs {
		raw, err := json.Marshal(obj)
		if err != nil {
			return nil, fmt.Errorf("embedded CRDs: %w", err)
		}
		name, _ := Lookup(obj, "/metadata/name").(string)
		group, _ := Lookup(obj, "/spec/group").(string)
		kind, _ := Lookup(obj, "/spec/names/kind").(string)
		out.by[groupKind{group, kind}] = &crd{name: name, raw: raw, embedded: true}
	}
	return out, nil
}

// scheme knows the defaults and conversions of CRDs.
var scheme = sync.OnceValue(func() *kruntime.Scheme {
	s := kruntime.NewScheme()
	install.Install(s)
	return s
})

// crd is one CRD: read, checked and compiled when it is first needed.
type crd struct {
	name     string
	raw      []byte
	sum      [32]byte
	embedded bool

	readOnce sync.Once
	readErr  error
	internal *apiextensions.CustomResourceDefinition
	versions map[string]*crdVersion
	served   []string // API versions

	checkOnce sync.Once
	problems  []CRDProblem
}

// read decodes the CRD as an API server does.
func (d *crd) read() error {
	d.readOnce.Do(func() {
		defer func() {
			if r := recover(); r != nil {
				d.readErr = fmt.Errorf("can't be read: %v", r)
			}
		}()
		d.readErr = d.decode()
	})
	return d.readErr
}

func (d *crd) decode() error {
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(d.raw, &v1); err != nil {
		return fmt.Errorf("is no CustomResourceDefinition: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	scheme().Default(&v1)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme().Convert(&v1, internal, nil); err != nil {
		return err
	}
	// As the API server does before it validates one that is created.
	internal.Status = apiextensions.CustomResourceDefinitionStatus{}
	d.versions = map[string]*crdVersion{}
	for i := range internal.Spec.Versions {
		v := &internal.Spec.Versions[i]
		if v.Storage && len(internal.Status.StoredVersions) == 0 {
			internal.Status.StoredVersions = []string{v.Name}
		}
		if v.Served {
			d.served = append(d.served, internal.Spec.Group+"/"+v.Name)
		}
		if d.versions[v.Name] == nil {
			d.versions[v.Name] = &crdVersion{spec: v}
		}
	}
	d.internal = internal
	return nil
}

// check asks whether an API server would take the CRD.
func (d *crd) check() {
	d.checkOnce.Do(func() {
		problem := func(code, path, message string) {
			var obj map[string]any
			// It was marshalled from an object, so it is one.
			_ = json.Unmarshal(d.raw, &obj)
			d.problems = append(d.problems, CRDProblem{Name: d.name, Code: code, Field: pointerOf(obj, written(path)), Message: message})
		}
		defer func() {
			if r := recover(); r != nil {
				problem(InvalidValue, "", fmt.Sprintf("can't be checked: %v", r))
			}
		}()
		if err := d.read(); err != nil {
			problem(InvalidValue, "", err.Error())
			return
		}
		for _, e := range validation.ValidateCustomResourceDefinition(context.Background(), d.internal) {
			if len(d.problems) >= maxViolations {
				break
			}
			problem(code(e.Type), e.Field, detail(e))
		}
	})
}

// hoisted are fields that the internal form of a CRD keeps once for all versions,
// when all have the same.
var hoisted = map[string]string{"validation": "schema", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns", "selectableFields": "selectableFields"}

// written is the path in the v1 form of a path in the internal one.
func written(path string) string {
	rest, ok := strings.CutPrefix(path, "spec.")
	if !ok {
		return path
	}
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	if outer := hoisted[rest[:end]]; outer != "" {
		return "spec.versions[0]." + outer + rest[end:]
	}
	if client, ok := strings.CutPrefix(rest, "conversion.webhookClientConfig"); ok {
		return "spec.conversion.webhook.clientConfig" + client
	}
	return path
}

func (d *crd) schemaID(version string) string {
	if d.embedded {
		return d.name + "/" + version + " (embedded)"
	}
	return d.name + "/" + version + " (sha256:" + hex.EncodeToString(d.sum[:6]) + ")"
}
