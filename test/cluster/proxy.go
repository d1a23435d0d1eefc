package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// proxy stands in front of the API server, shows the same certificate, counts
// and lets faults happen. It stays when the API server is restarted.
type proxy struct {
	url     string
	counter *Counter
	faults  faults
	forward *httputil.ReverseProxy
	server  *http.Server
}

func startProxy(target string, certs *certificates) (*proxy, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("cannot start the proxy before the API server: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the proxy before the API server: %w", err)
	}
	// What the tests inject is no news, and the rest shows in their answers.
	quiet := log.New(io.Discard, "", 0)
	p := &proxy{
		url:     "https://" + listener.Addr().String(),
		counter: &Counter{requests: map[request]int{}},
		forward: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
			Transport: &http.Transport{
				TLSClientConfig:    &tls.Config{RootCAs: certs.pool},
				ForceAttemptHTTP2:  true,
				DisableCompression: true, // what the client accepts is passed on
			},
			FlushInterval: -1, // a watch is read line by line
			ErrorLog:      quiet,
			// While the API server is down, the connection breaks as it would without a proxy.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
	}
	p.server = &http.Server{Handler: p, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certs.pair}}}
	go func() {
		if err := p.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("the proxy before the API server: %v", err))
		}
	}()
	return p, nil
}

func (p *proxy) stop() error { return p.server.Close() }

// ServeHTTP counts a request, lets a fault happen to it, or passes it on.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := parse(r)
	p.counter.add(q)
	w = &countingWriter{ResponseWriter: w, counter: p.counter}
	if f, ok := p.faults.take(q); ok && f.happen(w, r, q) {
		return
	}
	p.forward.ServeHTTP(w, r)
}

// countingWriter counts the bytes of the body before the client can have read them.
type countingWriter struct {
	http.ResponseWriter
	counter *Counter
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.counter.addBytes(len(b))
	return w.ResponseWriter.Write(b)
}

// Unwrap lets the reverse proxy flush.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
