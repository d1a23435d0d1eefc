package gate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// DigestSteps pins what a crossing would do: SHA-256, in hex, over the steps and
// vars as JSON with sorted keys and without white space. The order of steps and
// of vars counts, the way in which `with` was written does not.
func DigestSteps(steps []v1alpha1.Step, vars []v1alpha1.Var) string {
	// Spelt out, so that a field that is added to Step cannot go unnoticed: the
	// test compares the two.
	type step struct {
		Uses            string `json:"uses"`
		As              string `json:"as"`
		With            any    `json:"with"`
		If              string `json:"if"`
		Timeout         string `json:"timeout"`
		ContinueOnError bool   `json:"continueOnError"`
	}
	pinned := struct {
		Steps []step         `json:"steps"`
		Vars  []v1alpha1.Var `json:"vars"`
	}{Steps: []step{}, Vars: append([]v1alpha1.Var{}, vars...)}
	for _, s := range steps {
		p := step{Uses: s.Uses, As: s.As, If: s.If, ContinueOnError: s.ContinueOnError}
		if s.With != nil {
			p.With = canonical(s.With.Raw)
		}
		if s.Timeout != nil {
			p.Timeout = s.Timeout.Duration.String()
		}
		pinned.Steps = append(pinned.Steps, p)
	}
	data, err := json.Marshal(pinned)
	if err != nil {
		// Strings, booleans and decoded JSON always encode.
		panic(fmt.Sprintf("gate: encoding steps for their digest: %v", err))
	}
	return sum(data)
}

// canonical is the value that raw holds, with numbers kept as written. What is
// not JSON (an API server would not have stored it) stands for itself.
func canonical(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return "not JSON: " + hex.EncodeToString(raw)
	}
	return v
}

// BundleDigest is the digest that a Beacon writes into spec.digest, 64 hex
// digits (hecate-facts, section 2). The order of artifacts does not count; an
// image counts by its digest, and by its tag only without one.
func BundleDigest(arts []v1alpha1.Artifact) string {
	lines := make([]string, 0, len(arts))
	for _, a := range arts {
		var fields []string
		switch {
		case a.Image != nil:
			fields = []string{"image", a.Image.Repo, cmp.Or(a.Image.Digest, a.Image.Tag)}
		case a.Chart != nil:
			fields = []string{"chart", a.Chart.Repo, a.Chart.Name, a.Chart.Version}
		case a.Commit != nil:
			fields = []string{"commit", a.Commit.Repo, a.Commit.SHA}
		default:
			continue // the schema admits no such artifact
		}
		lines = append(lines, strings.Join(fields, "\x00"))
	}
	slices.Sort(lines)
	return sum([]byte(strings.Join(lines, "\n")))
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
