package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed roles.yaml
var rolesYAML []byte

// bootstrap creates the roles and the bindings that every test may count on.
func (c *Cluster) bootstrap() error {
	objects, err := decode("roles.yaml", rolesYAML)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.client.Create(context.Background(), o); err != nil {
			return fmt.Errorf("cannot create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// Grant gives user a ClusterRole, for example "hecate-viewer", in one namespace.
func (c *Cluster) Grant(t testing.TB, user, namespace, role string) {
	t.Helper()
	err := c.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: role + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	if err != nil {
		t.Fatalf("cannot grant %s to %s in namespace %s: %v", role, user, namespace, err)
	}
}
