package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { Main(m) }

const (
	hecate = "/apis/hecate.dev/v1alpha1"
	gate   = `{"apiVersion":"hecate.dev/v1alpha1","kind":"Gate","metadata":{"name":"dev"},"spec":{"admits":[{"from":{"beacon":"web"}}]}}`
	bundle = `{"apiVersion":"hecate.dev/v1alpha1","kind":"Bundle","metadata":{"generateName":"web-"},"spec":{"beacon":"web","artifacts":[{"image":{"repo":"registry.example.com/acme/web","tag":"1.0.0"}}]}}`
	// A Passage like the ones that a promotion makes.
	passage = `{"apiVersion":"hecate.dev/v1alpha1","kind":"Passage","metadata":{"generateName":"dev-"},"spec":{"gate":"dev","bundle":"web-aaaaaaaaaaaa","steps":[{"uses":"http"}]}}`
)

// ask sends one request as user through the counting proxy, and nothing else:
// a client with a REST mapper would ask more.
func ask(t *testing.T, c *Cluster, user, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	cfg := c.Config(user)
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, cfg.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&answer); err != nil {
		t.Fatalf("%s %s as %s: %s with a body that is no JSON object: %v\n%s", method, path, user, resp.Status, err, data)
	}
	return resp.StatusCode, answer
}

// mustAsk is ask for a request that has to succeed.
func mustAsk(t *testing.T, c *Cluster, user, method, path, body string) map[string]any {
	t.Helper()
	status, answer := ask(t, c, user, method, path, body)
	if status >= 300 {
		t.Fatalf("%s %s as %s: %d %v", method, path, user, status, answer["message"])
	}
	return answer
}

// continueToken is what a LIST's first page ends with.
func continueToken(t *testing.T, list map[string]any) string {
	t.Helper()
	token, _ := list["metadata"].(map[string]any)["continue"].(string)
	if token == "" {
		t.Fatalf("the page has no continue token: %v", list["metadata"])
	}
	return token
}
