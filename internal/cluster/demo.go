package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"
)

// DemoEvidenceHost is the host of the demo's evidence server, which the demo's
// HTTPClient answers in process. The name cannot exist (RFC 6761).
const DemoEvidenceHost = "fides.demo.invalid"

// OpenDemo returns the demo over an estate: fsys holds objects and meta.json
// as a snapshot folder does, evidence (may be nil) answers for the evidence
// server. Errors are those of Open.
func OpenDemo(fsys fs.FS, evidence http.Handler, o Options) (*Source, error) {
	o.Demo, o.DemoFS, o.DemoEvidence = true, fsys, evidence
	return Open(context.Background(), o)
}

func openDemo(ctx context.Context, o Options) (*Source, error) {
	if o.DemoFS == nil {
		return nil, &UsageError{Message: "this build has no demo estate: Options.DemoFS is not set"}
	}
	l := loader{fsys: o.DemoFS, store: newStore(), maxFile: MaxFile, maxTotal: MaxTotal}
	l.store.keepSecrets = true
	if err := l.folder(ctx); err != nil {
		return nil, err
	}
	if err := l.store.finish(); err != nil {
		return nil, err
	}
	s := l.source(ModeDemo, string(ModeDemo), o)
	s.HTTPClient = &http.Client{Transport: inProcess{host: DemoEvidenceHost, handler: o.DemoEvidence}}
	if m, ok := s.Client.(*memory); ok && o.DemoController != nil {
		clock := &demoClock{wall: o.DemoWall, at: l.captured.UTC()}
		if clock.wall == nil {
			clock.wall = time.Now
		}
		if o.Now != nil {
			clock.at = o.Now.UTC()
		}
		m.world = newWorld(m, o.DemoController, clock, s.HTTPClient)
		s.Now = clock.now
	}
	return s, nil
}

// inProcess answers requests to one host from a handler and refuses all
// others: no socket is ever opened.
type inProcess struct {
	host    string
	handler http.Handler
}

// RoundTrip serves the request before it returns. A panic of the handler is an
// error, as it would be a broken connection to a real server.
func (t inProcess) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if req.URL.Hostname() != t.host || t.handler == nil {
		return nil, fmt.Errorf("the demo opens no connection: host %q is not there; valid: %s", req.URL.Hostname(), t.host)
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			resp, err = nil, fmt.Errorf("the demo's evidence server failed on %s %s: %v", req.Method, req.URL.Path, r)
		}
	}()
	in := req.Clone(req.Context())
	in.RequestURI = req.URL.RequestURI()
	in.RemoteAddr = "demo"
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &answer{header: http.Header{}}
	t.handler.ServeHTTP(w, in)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return w.response(req), nil
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	sent   http.Header // header as it was at WriteHeader; later changes have no effect
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.sent != nil {
		return
	}
	a.status, a.sent = status, a.header.Clone()
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *answer) response(req *http.Request) *http.Response {
	a.WriteHeader(http.StatusOK)
	if a.sent.Get("Content-Type") == "" && a.body.Len() > 0 {
		a.sent.Set("Content-Type", http.DetectContentType(a.body.Bytes()))
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)),
		StatusCode:    a.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        a.sent,
		Body:          io.NopCloser(&a.body),
		ContentLength: int64(a.body.Len()),
		Request:       req,
	}
}
