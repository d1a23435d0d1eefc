package ops

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// tokenKey is the key of the Secret that holds the evidence server's token.
const tokenKey = "token"

// credentials reads the token for one of the Gates: the first that has one.
// Without a token it says what is missing; the Secret's values stay here.
func (o *Ops) credentials(ctx context.Context, gates []*v1alpha1.Gate) (token string, status ArtifactStatus, missing []Incomplete) {
	status = ArtifactNotConfigured
	seen := map[string]bool{}
	for _, g := range gates {
		ref := g.Spec.Evidence.CredentialsRef
		if ref == nil || seen[ref.Name] {
			continue
		}
		seen[ref.Name] = true
		obj := Object{APIVersion: "v1", Kind: "Secret", Namespace: g.Namespace, Name: ref.Name}
		var secret corev1.Secret
		if err := o.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: ref.Name}, &secret); err != nil {
			inc := incomplete(err, obj)
			if inc.Code != SourceNotFound {
				status = ArtifactUnavailable
			}
			missing = append(missing, inc)
			continue
		}
		if t := strings.TrimSpace(string(secret.Data[tokenKey])); t != "" {
			return t, "", nil
		}
		missing = append(missing, Incomplete{Code: SourceNotFound, Object: obj, Detail: "the Secret has no " + tokenKey})
	}
	return "", status, missing
}

// credentialDetail says why there is no token.
func credentialDetail(g *v1alpha1.Gate, missing []Incomplete) string {
	if len(missing) == 0 {
		return fmt.Sprintf("Gate %s names no credentialsRef, and the evidence server refuses anonymous reads", g.Name)
	}
	m := missing[0]
	return fmt.Sprintf("Secret %s/%s: %s: %s", m.Object.Namespace, m.Object.Name, m.Code, m.Detail)
}

// mask takes the token out of a text, makes it safe to show and bounds it.
func mask(text, token string) string {
	if token != "" {
		text = strings.ReplaceAll(text, token, Masked)
	}
	return clean(text, 300)
}
