package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The users that the API server knows, each by a bearer token. Any other name
// gets a token that it does not know: 401.
const (
	Admin        = "admin"         // in system:masters: may do everything
	Viewer       = "viewer"        // hecate-viewer in every namespace
	Promoter     = "promoter"      // hecate-promoter in every namespace
	Approver     = "approver"      // hecate-approver in every namespace
	OneNamespace = "one-namespace" // nothing until Grant gives a role in one namespace
	Nobody       = "nobody"        // known, and may do nothing: 403
	Stranger     = "stranger"      // has a token that the API server does not know: 401
)

// token is a user's bearer token.
func token(user string) string { return "token-of-" + user }

func (c *Cluster) tokenFile() string { return filepath.Join(c.dir, "tokens.csv") }

// writeTokens writes the API server's static token file: token, name, uid and groups.
func writeTokens(path string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s,%s,uid-%s,system:masters\n", token(Admin), Admin, Admin)
	for _, user := range []string{Viewer, Promoter, Approver, OneNamespace, Nobody} {
		fmt.Fprintf(&b, "%s,%s,uid-%s\n", token(user), user, user)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("cannot write the token file: %w", err)
	}
	return nil
}

// Config is how a client reaches the API server as user, through the proxy
// that counts. It has no client-side rate limit.
func (c *Cluster) Config(user string) *rest.Config { return c.config(c.proxy.url, user) }

// Kubeconfig writes a kubeconfig with one context, called "test", for user in
// namespace, and returns its path. The file goes with the test.
func (c *Cluster) Kubeconfig(t testing.TB, user, namespace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: c.proxy.url, CertificateAuthorityData: c.certs.caPEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {Token: token(user)}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: user, Namespace: namespace}},
		CurrentContext: "test",
	}, path)
	if err != nil {
		t.Fatalf("cannot write a kubeconfig for %s: %v", user, err)
	}
	return path
}
