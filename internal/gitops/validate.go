package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
	"github.com/hecate-mcp/hecate-mcp/internal/schema"
)

// ValidateOptions choose what to validate against.
type ValidateOptions struct {
	// KubernetesVersion picks the embedded schemas: one of schema.Versions, the
	// newest by default.
	KubernetesVersion string
	// CRDs are those of a live cluster, for kinds that the repository's own
	// clusters don't declare.
	CRDs []map[string]any
	// DryRun asks an API server about an object, nil not to. An error is its
	// refusal; ErrCannotSay means that it could not judge.
	DryRun func(ctx context.Context, obj map[string]any) error
}

// ErrCannotSay is how a dry run answers when it could not judge an object.
var ErrCannotSay = errors.New("the API server could not judge the object")

// Validation is what ValidateManifests found.
type Validation struct {
	Graph    *FluxGraph
	Verdicts []Verdict // by key
	Findings []Finding // the worst first
	Meta     ValidationMeta
}

// schemaSets opens each version's schemas once.
type schemaSets struct {
	mu   sync.Mutex
	sets map[string]*schema.Set
}

func (e *Engine) schemaSet(version string) (*schema.Set, error) {
	e.schemas.mu.Lock()
	defer e.schemas.mu.Unlock()
	if s := e.schemas.sets[version]; s != nil {
		return s, nil
	}
	s, err := schema.Open(schema.Options{KubernetesVersion: version, Dirs: e.options.SchemaDirs})
	if err != nil {
		var se *schema.Error
		if errors.As(err, &se) {
			return nil, &Error{Code: ErrInvalidArgument, Message: se.Error(), Valid: se.Valid, Err: err}
		}
		return nil, err
	}
	if e.schemas.sets == nil {
		e.schemas.sets = map[string]*schema.Set{}
	}
	e.schemas.sets[version] = s
	return s, nil
}

// ValidateManifests renders every Kustomization and judges what comes out:
// the graph, the build, and each object by the best authority that knows it.
// Problems of the repository are findings; an error means that there is no answer.
func (e *Engine) ValidateManifests(ctx context.Context, repo Repo, o ValidateOptions) (*Validation, error) {
	set, err := e.schemaSet(o.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	s, err := e.open(ctx, repo, nil)
	if err != nil {
		return nil, err
	}
	defer s.tree.Release()
	d, g, err := e.discovered(ctx, s)
	if err != nil {
		return nil, err
	}
	return e.validate(ctx, d, g, set, o)
}

func (e *Engine) validate(ctx context.Context, d *discovery, g *FluxGraph, set *schema.Set, o ValidateOptions) (*Validation, error) {
	v := &validation{e: e, d: d, g: g, set: set, o: o, book: newBook(),
		meta: ValidationMeta{KubernetesVersion: set.Version(), Validated: map[string]int{}, Uncovered: map[string]int{}, ByAuthority: map[Source]int{}}}
	for _, f := range g.Findings {
		v.book.add(f)
	}
	v.clusterCRDs()
	if err := v.objects(ctx); err != nil {
		return nil, err
	}
	v.owners()
	out := &Validation{Graph: g, Findings: v.book.sorted(), Meta: v.meta}
	out.Verdicts = verdicts(g, out.Findings)
	return out, nil
}

// validation is one run.
type validation struct {
	e    *Engine
	d    *discovery
	g    *FluxGraph
	set  *schema.Set
	o    ValidateOptions
	book *book
	meta ValidationMeta

	crds map[string]*schema.CRDs
	sign map[string]string // cluster → digest of its CRDs

	// built is what builtOf was made of, see fromVariable.
	builtOf *manifest
	built   any
}

// clusterCRDs gathers the CRDs of each cluster's own output: never another's.
func (v *validation) clusterCRDs() {
	v.crds, v.sign = map[string]*schema.CRDs{}, map[string]string{}
	of := map[string][]map[string]any{}
	parts := map[string][]string{}
	from := map[string]map[string]*manifest{}
	at := map[string]map[string]*node{}
	for _, k := range v.g.Keys() {
		n := v.g.Kustomizations[k].node
		for _, m := range n.manifests {
			if m.Kind == "CustomResourceDefinition" && m.group() == "apiextensions.k8s.io" {
				of[k.Cluster] = append(of[k.Cluster], m.object())
				parts[k.Cluster] = append(parts[k.Cluster], m.digest())
				if from[k.Cluster] == nil {
					from[k.Cluster], at[k.Cluster] = map[string]*manifest{}, map[string]*node{}
				}
				from[k.Cluster][m.Name], at[k.Cluster][m.Name] = m, n
			}
		}
	}
	live := liveDigest(v.o.CRDs)
	for _, c := range v.g.Clusters {
		// The repository's own come first: the live ones fill what is missing.
		all := of[c.Name]
		for _, crd := range v.o.CRDs {
			if name := str(crd, "metadata", "name"); from[c.Name][name] == nil {
				all = append(all, crd)
			}
		}
		crds, problems := v.set.NewCRDs(all)
		v.crds[c.Name], v.sign[c.Name] = crds, digest(append(parts[c.Name], live)...)
		for _, p := range problems {
			m, n := from[c.Name][p.Name], at[c.Name][p.Name]
			if m == nil {
				continue // a live cluster's: not this repository's to mend
			}
			file, line := v.placeIn(n, m, p.Field, p.Code == schema.MissingField)
			obj := m.Object
			v.book.add(Finding{Code: Code(p.Code), Severity: SeverityFail, Source: SourceCRD, Kustomizations: []KustomizationKey{n.key}, Object: &obj, Field: p.Field,
				Message: p.Message, File: file, Line: line})
		}
	}
}

// liveDigest tells two states of a cluster's CRDs apart without reading them.
func liveDigest(crds []map[string]any) string {
	var parts []string
	for _, c := range crds {
		parts = append(parts, str(c, "metadata", "name"), str(c, "metadata", "uid"), str(c, "metadata", "resourceVersion"))
	}
	return digest(parts...)
}

// judged is a validated object: the cache keeps it by content.
type judged struct {
	result schema.Result
}

// objects validates every object once a cluster, in parallel.
func (v *validation) objects(ctx context.Context) error {
	type job struct {
		n *node
		m *manifest
		r schema.Result
		// refusal is the API server's word, nil when it was not asked or agreed.
		refusal error
	}
	var jobs []*job
	for _, k := range v.g.Keys() {
		n := v.g.Kustomizations[k].node
		for _, m := range n.manifests {
			jobs = append(jobs, &job{n: n, m: m})
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(v.e.workers)
	const batch = 64 // objects a task: a task an object would cost more than the small ones
	for i := 0; i < len(jobs); i += batch {
		part := jobs[i:min(i+batch, len(jobs))]
		group.Go(func() error {
			for _, j := range part {
				if err := gctx.Err(); err != nil {
					return err
				}
				key := digest("judged", v.set.ID(), v.sign[j.n.key.Cluster], j.m.digest())
				if c, ok := v.e.cache.get(key); ok {
					j.r = c.(*judged).result
				} else {
					j.r = v.set.Validate(gctx, stripped(j.m.object()), v.crds[j.n.key.Cluster])
					// A rule that was cut off is no judgement.
					if err := gctx.Err(); err != nil {
						return err
					}
					v.e.cache.put(key, &judged{j.r}, 512+512*len(j.r.Violations))
				}
				if v.o.DryRun != nil {
					j.refusal = v.o.DryRun(gctx, stripped(j.m.object()))
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, j := range jobs {
		v.count(j.m, j.r)
		for _, x := range j.r.Violations {
			v.violation(j.n, j.m, j.r, x)
		}
		if j.r.Namespaced && j.m.Namespace == "" {
			v.violation(j.n, j.m, j.r, schema.Violation{Code: schema.MissingField, Severity: schema.Fail, Field: "/metadata/namespace", Rule: "metadata.namespace",
				Message: "no namespace: Flux has no default one and refuses the object; set it here, as namespace in the kustomization file, or as spec.targetNamespace"})
		}
		if j.refusal != nil && !errors.Is(j.refusal, ErrCannotSay) {
			place := v.e.placeOf(j.n.art, j.m)
			obj := j.m.Object
			f := Finding{Code: ServerRefused, Severity: SeverityFail, Source: SourceCluster, Kustomizations: []KustomizationKey{j.n.key}, Object: &obj,
				Message: j.refusal.Error(), File: place.File, Line: place.Line}
			if len(j.m.taints) > 0 || len(encrypted(j.m)) > 0 {
				f.Code, f.Severity = Unverifiable, SeverityWarn
			}
			v.book.add(f)
		}
	}
	return nil
}

// stripped is the object without what SOPS adds and Flux takes away again.
func stripped(obj map[string]any) map[string]any {
	if obj["sops"] == nil {
		return obj
	}
	out := make(map[string]any, len(obj))
	for k, x := range obj {
		if k != "sops" {
			out[k] = x
		}
	}
	return out
}

func (v *validation) count(m *manifest, r schema.Result) {
	v.meta.Objects++
	name := m.Kind
	if g := m.group(); g != "" {
		name += "." + g
	}
	if m.Kind == "HelmRelease" || m.Kind == "ResourceSet" {
		v.meta.NotExpanded++
	}
	if !r.Covered {
		v.meta.Uncovered[name]++
		return
	}
	v.meta.Validated[name]++
	v.meta.ByAuthority[Source(r.Authority)]++
}

// violation turns what a schema says into a finding with its place.
func (v *validation) violation(n *node, m *manifest, r schema.Result, x schema.Violation) {
	obj := m.Object
	f := Finding{Code: Code(x.Code), Severity: Severity(x.Severity), Source: Source(x.Authority), Kustomizations: []KustomizationKey{n.key}, Object: &obj,
		Field: x.Field, Rule: x.Rule, Message: x.Message, Schema: x.SchemaID, Raw: x.Raw}
	if f.Source == "" {
		f.Source = Source(r.Authority)
	}
	f.File, f.Line = v.placeIn(n, m, x.Field, f.Code == MissingField)
	if hidden(m, x.Field) {
		return // what stands there now is not what is applied
	}
	const advice = "put it in quotes"
	if strings.HasSuffix(f.Message, advice) && v.fromVariable(n, m, x.Field) {
		f.Message = strings.TrimSuffix(f.Message, advice) + "the build drops quotes around a variable, so its value has to hold them, as in COUNT: '\"2\"'"
	}
	if remote := changer(n); remote != "" && f.Code == MissingField {
		f.Message = fmt.Sprintf("can't be judged: %s, which is left out, may set it (%s)", remote, f.Code)
		f.Code, f.Severity, f.Raw = Unverifiable, SeverityWarn, ""
	}
	if name := v.tainted(m, x.Field); name != "" {
		f.Message = fmt.Sprintf("can't be judged: the value holds %s, which is not known here (%s)", name, f.Code)
		f.Code, f.Severity, f.Raw = Unverifiable, SeverityWarn, ""
	}
	v.book.add(f)
}

// changer is a remote entry that was left out of the build and may have given objects
// of this repository more fields, "" without one. What only adds objects may not.
func changer(n *node) string {
	if n.build != nil {
		for _, s := range n.build.result.Stubs {
			switch s.Field {
			case "resources", "crds", "generators", "validators", "openapi":
			default:
				return s.Value
			}
		}
	}
	return ""
}

// fromVariable tells whether a field was a text with a variable when it was built.
// An object may have thousands of violations, which come one after the other: it
// is decoded for the first.
func (v *validation) fromVariable(n *node, m *manifest, pointer string) bool {
	if n.build == nil || m.index >= len(n.build.result.Objects) {
		return false
	}
	if v.builtOf != m {
		v.builtOf, v.built = m, nil
		// The renderer's own JSON; what does not decode has no fields.
		_ = json.Unmarshal(n.build.result.Objects[m.index].JSON, &v.built)
	}
	s, ok := schema.Lookup(v.built, pointer).(string)
	return ok && strings.Contains(s, "${")
}

// placeIn is where a field stands; of one that is missing, its parent.
func (v *validation) placeIn(n *node, m *manifest, pointer string, missing bool) (string, int) {
	if missing {
		pointer = parentPointer(pointer)
	}
	p := v.d.fieldPlace(n, m, pointer, missing)
	return p.File, p.Line
}

func parentPointer(p string) string {
	if i := strings.LastIndex(p, "/"); i >= 0 {
		return p[:i]
	}
	return ""
}

// tainted names what makes a value unknown: a variable, or encryption. A finding
// about a container of such a value is about the value.
func (v *validation) tainted(m *manifest, field string) string {
	for _, t := range m.taints {
		if covers(field, t.Pointer) {
			return "${" + t.Variable + "}"
		}
	}
	for _, p := range encrypted(m) {
		if covers(field, p) {
			return "an encrypted value"
		}
	}
	return ""
}

// hidden tells whether a field's own value is encrypted: nothing said of it holds
// for what is behind.
func hidden(m *manifest, field string) bool {
	for _, p := range encrypted(m) {
		if field == p {
			return true
		}
	}
	return false
}

// covers tells whether a finding at a field concerns the value at a pointer: the
// same place or one above it, but not the whole object.
func covers(field, pointer string) bool {
	return field == pointer || field != "" && strings.HasPrefix(pointer, field+"/") || strings.HasPrefix(field, pointer+"/")
}

// encrypted are the pointers of values that SOPS encrypted.
func encrypted(m *manifest) []string {
	obj := m.object()
	if obj["sops"] == nil {
		return nil
	}
	var out []string
	var walk func(p string, v any)
	walk = func(p string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for k, c := range x {
				walk(p+"/"+locate.Escape(k), c)
			}
		case []any:
			for i, c := range x {
				walk(fmt.Sprintf("%s/%d", p, i), c)
			}
		case string:
			if isEncrypted(x) {
				out = append(out, p)
			}
		}
	}
	walk("", stripped(obj))
	return out
}

// owners reports objects that two Kustomizations of one cluster render.
func (v *validation) owners() {
	type owner struct {
		n *node
		m *manifest
	}
	by := map[string][]owner{}
	var order []string
	for _, k := range v.g.Keys() {
		n := v.g.Kustomizations[k].node
		remote := str(n.object, "spec", "kubeConfig", "secretRef", "name") + str(n.object, "spec", "kubeConfig", "configMapRef", "name")
		seen := map[string]bool{}
		for _, m := range n.manifests {
			id := digest(k.Cluster, remote, m.group(), m.Kind, m.Namespace, m.Name)
			// A Kustomization that two others render is a finding of the graph already.
			if seen[id] || m.Name == "" || sharedOnPurpose(m) || isFluxKustomization(m.APIVersion, m.Kind) || variableIn(m.Name) != "" || variableIn(m.Namespace) != "" {
				continue
			}
			seen[id] = true
			if by[id] == nil {
				order = append(order, id)
			}
			by[id] = append(by[id], owner{n, m})
		}
	}
	for _, id := range order {
		owners := by[id]
		if len(owners) < 2 {
			continue
		}
		obj := owners[0].m.Object
		f := Finding{Code: DuplicateOwner, Severity: SeverityWarn, Source: SourceGraph, Object: &obj}
		same := true
		var names []string
		for _, o := range owners {
			f.Kustomizations = append(f.Kustomizations, o.n.key)
			names = append(names, o.n.key.Namespace+"/"+o.n.key.Name)
			same = same && o.m.digest() == owners[0].m.digest()
		}
		if same {
			f.Message = fmt.Sprintf("%s is rendered, equal, by %s: removed from one of them, Flux deletes it", obj, strings.Join(bounded(names, 5), " and "))
		} else {
			f.Severity = SeverityFail
			f.Message = fmt.Sprintf("%s is rendered differently by %s: they overwrite each other for ever", obj, strings.Join(bounded(names, 5), " and "))
		}
		last := owners[len(owners)-1]
		p := v.e.placeOf(last.n.art, last.m)
		f.File, f.Line = p.File, p.Line
		v.book.add(f)
	}
}

// sharedOnPurpose tells objects whose annotation lets several own them.
func sharedOnPurpose(m *manifest) bool {
	a := strings.ToLower(str(m.object(), "metadata", "annotations", groupKustomize+"/ssa"))
	return a == "merge" || a == "ifnotpresent" || a == "ignore"
}

// verdicts sums the findings up by Kustomization.
func verdicts(g *FluxGraph, findings []Finding) []Verdict {
	at := map[KustomizationKey]int{}
	var out []Verdict
	for _, k := range g.Keys() {
		n := g.Kustomizations[k]
		at[k] = len(out)
		out = append(out, Verdict{KustomizationKey: k, Status: SeverityPass, State: n.State, Objects: len(n.node.manifests)})
	}
	for i, f := range findings {
		for _, k := range f.Kustomizations {
			j, ok := at[k]
			if !ok {
				continue
			}
			v := &out[j]
			v.Findings = append(v.Findings, i)
			switch f.Severity {
			case SeverityFail:
				v.Fail++
			case SeverityWarn:
				v.Warn++
			}
			if f.Severity.weight() > v.Status.weight() {
				v.Status = f.Severity
			}
		}
	}
	// What runs behind a cycle never runs either.
	for k := range CycleNodes(g) {
		out[at[k]].Status = SeverityFail
	}
	return out
}
