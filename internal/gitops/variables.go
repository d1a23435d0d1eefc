package gitops

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// variables are what postBuild of one Kustomization substitutes.
type variables struct {
	// active: Flux substitutes at all.
	active bool
	values map[string]string
	// secret are the names whose value comes from a Secret.
	secret map[string]bool
	// hidden are names that exist but whose value is encrypted.
	hidden map[string]bool
	// missing are the producers that are not in the repository: any name may
	// come from there.
	missing []missingProducer
	always  bool
}

type missingProducer struct {
	kind, namespace, name string
	optional              bool
}

func (m missingProducer) String() string { return m.kind + " " + m.namespace + "/" + m.name }

// unknown tells whether a name may have a value that is not known here.
func (v *variables) unknown(name string) bool {
	if _, ok := v.values[name]; ok {
		return false
	}
	return v.hidden[name] || len(v.missing) > 0
}

// signature digests the variables, so that the same ones need no second run.
func (v *variables) signature() string {
	b, err := json.Marshal([]any{v.active, v.values, v.hidden, len(v.missing) > 0, v.always})
	if err != nil {
		return err.Error()
	}
	return digest(string(b))
}

// producer is a ConfigMap or Secret that values come from.
type producer struct {
	data map[string]string
}

// readProducer reads data, stringData and base64 data, and what sops encrypted.
func readProducer(obj map[string]any, secret bool) producer {
	p := producer{data: map[string]string{}}
	if data, ok := obj["data"].(map[string]any); ok {
		for k, v := range data {
			s := fmt.Sprint(v)
			if secret {
				if b, err := base64.StdEncoding.DecodeString(s); err == nil {
					s = string(b)
				}
			}
			p.data[k] = s
		}
	}
	if data, ok := obj["stringData"].(map[string]any); ok && secret {
		for k, v := range data {
			p.data[k] = fmt.Sprint(v)
		}
	}
	return p
}

// isEncrypted tells a value that SOPS encrypted.
func isEncrypted(s string) bool { return strings.HasPrefix(s, "ENC[") }

// variablesOf resolves spec.postBuild of a node: substituteFrom in order, then
// the values that the user named, then the inline ones, as the controller does.
func (d *discovery) variablesOf(n *node) *variables {
	v := &variables{values: map[string]string{}, secret: map[string]bool{}, hidden: map[string]bool{}}
	post, _ := at(n.object, "spec", "postBuild").(map[string]any)
	if post == nil {
		return v
	}
	v.always = str(n.object, "spec", "postBuild", "substituteStrategy") == "Always"
	from := list(post, "substituteFrom")
	inline, _ := post["substitute"].(map[string]any)
	for _, f := range from {
		kind, name := str(f, "kind"), str(f, "name")
		optional, _ := at(f, "optional").(bool)
		p, ok := d.producer(n.key, kind, n.key.Namespace, name)
		if !ok {
			v.missing = append(v.missing, missingProducer{kind, n.key.Namespace, name, optional})
			continue
		}
		for k, val := range p.data {
			delete(v.hidden, k)
			if isEncrypted(val) {
				v.hidden[k] = true
				delete(v.values, k)
				continue
			}
			v.values[k] = strings.ReplaceAll(val, "\n", "")
			v.secret[k] = kind == "Secret"
		}
	}
	for k, val := range d.varsOf(n.key.Cluster) {
		if len(from) > 0 || len(inline) > 0 {
			v.values[k], v.hidden[k], v.secret[k] = val, false, false
		}
	}
	for k, val := range inline {
		v.values[k], v.hidden[k], v.secret[k] = strings.ReplaceAll(fmt.Sprint(val), "\n", ""), false, false
	}
	for k, isHidden := range v.hidden {
		if !isHidden {
			delete(v.hidden, k)
		}
	}
	v.active = len(v.values) > 0 || len(v.missing) > 0 || len(v.hidden) > 0 || v.always
	return v
}

// producer finds a ConfigMap or Secret: in what the cluster renders, else in the
// files, where one that only another cluster could mean is not taken.
func (d *discovery) producer(k KustomizationKey, kind, namespace, name string) (producer, bool) {
	if m := d.rendered[k.Cluster][Object{Kind: kind, Namespace: namespace, Name: name}]; m != nil {
		return readProducer(m.object(), kind == "Secret"), true
	}
	var found []document
	for _, doc := range d.snap.docs {
		if doc.Kind == kind && groupOf(doc.APIVersion) == "" && doc.Name == name && (doc.Namespace == namespace || doc.Namespace == "") {
			found = append(found, doc)
		}
	}
	if len(found) > 1 {
		// The cluster's own folders come first.
		own := slices.DeleteFunc(slices.Clone(found), func(doc document) bool {
			return !d.owns(k.Cluster, doc.File)
		})
		if len(own) > 0 {
			found = own
		}
	}
	if len(found) == 0 {
		return producer{}, false
	}
	first := readProducer(found[0].obj, kind == "Secret")
	for _, other := range found[1:] {
		if fmt.Sprint(readProducer(other.obj, kind == "Secret")) != fmt.Sprint(first) {
			return producer{}, false
		}
	}
	return first, true
}
