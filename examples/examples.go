package examples

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/fides/fidestest"
)

// FidesURL is the serverURL of every Gate of the estate that has evidence; who
// opens the demo sends requests for it to Fides.
const FidesURL = "http://fides.demo.invalid"

//go:embed estate
var estate embed.FS

//go:embed evidence.yaml
var evidence []byte

// Estate is the demo's snapshot: Lists of objects as kubectl dumps them, and
// meta.json with the time of the capture.
func Estate() fs.FS {
	sub, err := fs.Sub(estate, "estate")
	if err != nil {
		panic("examples: the embedded estate has no folder: " + err.Error())
	}
	return sub
}

// Fides is a new evidence server that knows the estate's images; its clock
// stands at the time of the capture, as the demo's does. It panics when the
// embedded files are malformed, which a test rules out.
func Fides() http.Handler {
	state, err := fidestest.Parse(evidence)
	if err != nil {
		panic("examples: evidence.yaml: " + err.Error())
	}
	var meta struct {
		CapturedAt time.Time `json:"capturedAt"`
	}
	data, err := fs.ReadFile(Estate(), "meta.json")
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	if err != nil {
		panic("examples: meta.json: " + err.Error())
	}
	server := fidestest.New(state)
	server.Now = func() time.Time { return meta.CapturedAt }
	return server.Handler()
}
