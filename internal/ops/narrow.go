package ops

// inDefault calls read for a namespace and, for a user who may not list over
// all of them, again for the default one; what was left out is then said.
func (o *Ops) inDefault(kind, namespace string, read func(namespace string) error) ([]Incomplete, error) {
	err := read(namespace)
	if err == nil || namespace != AllNamespaces || o.DefaultNamespace == "" || sourceCode(err) != SourceForbidden {
		return nil, err
	}
	if err := read(o.DefaultNamespace); err != nil {
		return nil, err
	}
	return []Incomplete{{Code: SourceForbidden, Object: hecate(kind, "", ""),
		Detail: "not allowed to list over all namespaces; the answer covers namespace " + o.DefaultNamespace}}, nil
}
