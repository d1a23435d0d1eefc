package fidestest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

const (
	serviceIdentity = "service-account"
	organisation    = "00000000-0000-4000-8000-000000000001"
)

// Server answers from a State. It is safe for concurrent use.
type Server struct {
	// Now is its clock; set it before the first request.
	Now func() time.Time

	mux *http.ServeMux

	mu       sync.Mutex // guards what follows
	state    State
	nextID   int
	writes   int
	requests []string
}

// New makes a server with a deep copy of the state. A state that JSON cannot
// carry (an invalid payload) panics: it is a mistake of the program; for a file
// use Parse, which checks.
func New(s State) *Server {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("fidestest: the state cannot be copied: %v", err))
	}
	srv := &Server{Now: func() time.Time { return time.Now().UTC() }}
	if err := json.Unmarshal(data, &srv.state); err != nil {
		panic(fmt.Sprintf("fidestest: the state cannot be copied: %v", err))
	}
	for i := range srv.state.Trails {
		for j := range srv.state.Trails[i].Attestations {
			if a := &srv.state.Trails[i].Attestations[j]; a.ID == "" {
				a.ID = srv.newID()
			}
		}
	}
	srv.routes()
	return srv
}

func (s *Server) newID() string {
	s.nextID++
	return fmt.Sprintf("00000000-0000-4000-9000-%012d", s.nextID)
}

// Handler serves the API, with paths from the root.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// HTTPClient asks this server whatever the host of the URL is, without a
// network: for fides.Config.HTTPClient.
func (s *Server) HTTPClient() *http.Client {
	return &http.Client{Transport: inProcess{s.Handler()}}
}

// Writes counts the changes of the state since New: attestations that reading
// the change gate appended, and whatever was posted.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Requests lists "METHOD path?query" of every request so far, in order.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// refused is an answer of the server that is not JSON.
type refused struct {
	status int
	text   string
}

func (r refused) Error() string { return r.text }

var (
	errTrail       = refused{http.StatusNotFound, "trail not found"}
	errEnvironment = refused{http.StatusNotFound, "environment not found"}
	errInternal    = refused{http.StatusInternalServerError, "internal server error"}
	errBadBody     = refused{http.StatusBadRequest, "invalid request body"}
)

// caller is who asks.
type caller struct {
	identity, kind string
	delegates      bool
}

// handler runs under the lock and returns a status and the JSON to answer.
type handler func(r *http.Request, who caller) (int, any, error)

func (s *Server) routes() {
	s.mux = http.NewServeMux()
	for pattern, h := range map[string]handler{
		"GET /api/v1/search/artifacts":                s.searchArtifacts,
		"GET /api/v1/artifacts":                       s.listArtifacts,
		"POST /api/v1/artifacts":                      s.reportArtifact,
		"GET /api/v1/trails/{id}/change-gate":         s.changeGate,
		"GET /api/v1/trails/{id}/verify-chain":        s.verifyChain,
		"GET /api/v1/trails/{id}/approvals":           s.listApprovals,
		"POST /api/v1/trails/{id}/approvals":          s.approve,
		"GET /api/v1/environments/{env}/policy-check": s.policyCheck,
		"GET /api/v1/environments/{env}/allowlist":    s.allowlist,
		"POST /api/v1/environments/{env}/allowlist":   s.allow,
		"GET /api/v1/compliance":                      s.compliance,
		"GET /api/v1/search/attestations":             s.searchAttestations,
		"GET /api/v1/attestations/{id}":               s.attestation,
		"POST /api/v1/attestations":                   s.attest,
	} {
		s.mux.Handle(pattern, s.wrap(h))
	}
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "OK") // a caller that went away is no fault
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	s.mux.ServeHTTP(w, r)
}

func (s *Server) wrap(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		who, err := s.authenticate(r)
		var status int
		var out any
		if err == nil {
			status, out, err = h(r, who)
		}
		var no refused
		switch {
		case errors.As(err, &no):
			if no.text == errNoCredentials.text {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, no.text, no.status)
			return
		case err != nil:
			http.Error(w, errInternal.text, errInternal.status)
			return
		}
		data, err := json.Marshal(out)
		if err != nil {
			http.Error(w, errInternal.text, errInternal.status)
			return
		}
		contentType := "application/json"
		if _, ok := out.(fides.ApprovalResult); ok {
			contentType = "text/plain; charset=utf-8" // as the real server labels it
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write(append(data, '\n')) // a caller that went away is no fault
	})
}

var errNoCredentials = refused{http.StatusUnauthorized, "authentication required"}

func (s *Server) authenticate(r *http.Request) (caller, error) {
	if s.state.Token == "" {
		return caller{}, refused{http.StatusServiceUnavailable, "API authentication is not configured on the server"}
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return caller{}, errNoCredentials
	}
	if token == s.state.Token {
		return caller{serviceIdentity, fides.KindService, true}, nil
	}
	for _, k := range s.state.Keys {
		switch {
		case k.Token != token || token == "":
		case k.Person != "":
			return caller{k.Person, fides.KindSession, false}, nil
		default:
			return caller{serviceIdentity, fides.KindService, k.Delegates}, nil
		}
	}
	return caller{}, refused{http.StatusUnauthorized, "invalid credentials"}
}

// trail finds a trail by an id that has to be a UUID.
func (s *Server) trail(id string) (*Trail, error) {
	if !uuidPattern.MatchString(id) {
		return nil, refused{http.StatusBadRequest, "invalid trail id"}
	}
	for i := range s.state.Trails {
		if s.state.Trails[i].ID == id {
			return &s.state.Trails[i], nil
		}
	}
	return nil, errTrail
}

func (s *Server) environment(id string) (*Environment, error) {
	if !uuidPattern.MatchString(id) {
		return nil, refused{http.StatusBadRequest, "invalid environment id"}
	}
	for i := range s.state.Environments {
		if s.state.Environments[i].ID == id {
			return &s.state.Environments[i], nil
		}
	}
	return nil, errEnvironment
}

func (s *Server) artifact(sha string) *Artifact {
	for i := range s.state.Artifacts {
		if s.state.Artifacts[i].SHA256 == sha {
			return &s.state.Artifacts[i]
		}
	}
	return nil
}

func body(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return errBadBody
	}
	return nil
}

// inProcess is an http.RoundTripper that calls a handler.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer func() { _ = in.Body.Close() }() // a buffer: closing cannot lose anything
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	p.handler.ServeHTTP(w, in)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }
