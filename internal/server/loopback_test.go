package server

import (
	"log/slog"
	"net"
	"strings"
	"testing"
)

func TestListenAddress(t *testing.T) {
	for listen, valid := range map[string]bool{
		"127.0.0.1:0":             true,
		"127.9.8.7:8080":          true,
		"[::1]:0":                 true,
		"localhost:0":             true,
		"LocalHost:80":            true,
		"[::ffff:127.0.0.1]:1":    true,
		":8080":                   false,
		"0.0.0.0:8080":            false,
		"[::]:8080":               false,
		"192.168.1.4:80":          false,
		"example.com:80":          false,
		"localhost.example:80":    false,
		"127.0.0.1.example.com:1": false,
		"127.0.0.1":               false,
		"2130706433:80":           false,
		"":                        false,
	} {
		err := checkListen(listen)
		if valid != (err == nil) {
			t.Errorf("%q: valid %v, got %v", listen, valid, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "127.0.0.1:PORT") || !strings.Contains(err.Error(), listen)) {
			t.Errorf("%q: the error names neither the address nor what is valid: %v", listen, err)
		}
	}
}

func TestNewHTTPRefusesForeignAddress(t *testing.T) {
	_, err := NewHTTP(newFixture().core, HTTPOptions{Listen: "0.0.0.0:0"}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "no authentication") {
		t.Fatalf("got %v", err)
	}
}

func TestNewHTTPReportsPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := NewHTTP(newFixture().core, HTTPOptions{Listen: taken.Addr().String()}, slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("no error")
	}
}

func TestLoopbackHostAndOrigin(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:9000": true, "127.0.0.1:1": true, "[::1]:1": true, "[::1]": true,
		"": false, "evil.example": false, "localhost.evil.example:80": false, "10.0.0.1": false, ":80": false, "a@localhost": false,
	} {
		if got := isLoopbackHost(host); got != want {
			t.Errorf("host %q: %v", host, got)
		}
	}
	for origin, want := range map[string]bool{
		"http://localhost:6274": true, "https://127.0.0.1": true, "http://[::1]:3000": true,
		"null": false, "": false, "http://evil.example": false, "file://localhost": false, "http://localhost.evil.example": false,
		"http://localhost@evil.example": false, "chrome-extension://abc": false,
	} {
		if got := isLoopbackOrigin(origin); got != want {
			t.Errorf("origin %q: %v", origin, got)
		}
	}
}
