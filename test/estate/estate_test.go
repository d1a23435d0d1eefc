package estate

import (
	"reflect"
	"testing"
	"time"
)

func TestObjectsAreAsManyAndTheSameTwice(t *testing.T) {
	now := time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	namespaces := []string{"a", "b", "c", "d", "e"}
	for _, size := range []Size{{50, 400, 1000}, {500, 4000, 10000}, {7, 10, 20}} {
		objects := Objects(size, namespaces, now)
		got, names := map[string]int{}, map[string]bool{}
		for _, o := range objects {
			kind := o.GetObjectKind().GroupVersionKind().Kind
			got[kind]++
			names[kind+o.GetNamespace()+o.GetName()] = true
		}
		if got["Gate"] != size.Gates || got["Bundle"] != size.Bundles || got["Passage"] != size.Passages || len(names) != len(objects) {
			t.Errorf("%+v: made %v, %d with distinct names", size, got, len(names))
		}
		if !reflect.DeepEqual(objects, Objects(size, namespaces, now)) {
			t.Errorf("%+v: two estates differ", size)
		}
	}
}
