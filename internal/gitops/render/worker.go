package render

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// order and answer are what a pool and its worker say to each other: gob over
// the worker's standard input and output.
type order struct {
	Root, Path    string
	Origins       bool
	Kustomization []byte // JSON
}

type answer struct {
	Result Result
}

// Memory of a worker, in bytes: above the first the garbage collector works
// harder, at the second the worker ends.
const (
	softMemory = 1 << 30
	hardMemory = 2 << 30
)

// exitMemory is how a worker says that a build needed more memory than allowed.
const exitMemory = 3

// refusing is the transport of a worker: there is no network.
type refusing struct{}

func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("refused: a build fetches nothing (%s)", r.URL.Host)
}

// Worker answers the builds that a Pool asks for, one after the other, until in
// ends. It takes the network client and the PATH away from its own process, so
// call it in a process that does nothing else.
func Worker(in io.Reader, out io.Writer) error {
	http.DefaultTransport = refusing{}
	http.DefaultClient = &http.Client{Transport: refusing{}}
	if err := os.Setenv("PATH", ""); err != nil {
		return fmt.Errorf("taking the PATH away: %w", err)
	}
	debug.SetMemoryLimit(softMemory)
	// A quarter of a build is garbage collection otherwise, of a heap that is small.
	debug.SetGCPercent(400)
	go watchMemory()
	go prepare()
	dec, enc := gob.NewDecoder(in), gob.NewEncoder(out)
	builder := NewLocal()
	for {
		var o order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a build: %w", err)
		}
		var obj map[string]any
		if err := json.Unmarshal(o.Kustomization, &obj); err != nil {
			return fmt.Errorf("reading a Kustomization: %w", err)
		}
		r := builder.Build(context.Background(), Request{Root: o.Root, Path: o.Path, Origins: o.Origins, Kustomization: obj})
		if err := enc.Encode(answer{r}); err != nil {
			return fmt.Errorf("answering a build: %w", err)
		}
	}
}

// watchMemory ends the process when a build takes more than its share.
func watchMemory() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for range time.Tick(50 * time.Millisecond) {
		if metrics.Read(sample); sample[0].Value.Uint64() > hardMemory {
			os.Exit(exitMemory)
		}
	}
}
