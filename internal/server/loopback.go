package server

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// validListen is what an error about a listen address names as valid.
const validListen = "valid: localhost:PORT, 127.0.0.1:PORT (any address of 127.0.0.0/8) or [::1]:PORT; port 0 picks a free one"

// checkListen reports why a listen address ("host:port") may not be used; nil when its host is loopback.
// There is no authentication yet, so an address that other machines can reach is refused.
func checkListen(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen address %q is not host:port (%w); %s", listen, err, validListen)
	}
	if !isLoopback(host) {
		return fmt.Errorf("listen address %q is refused: other machines could reach it, and there is no authentication yet; %s", listen, validListen)
	}
	return nil
}

// isLoopback reports whether host, without a port, is the name localhost or a literal loopback address.
// No name is ever resolved: whoever answers the DNS would decide.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// isLoopbackHost is isLoopback for a Host header, with or without a port. The port is not compared: a
// tunnel changes it, and DNS rebinding is about the name.
func isLoopbackHost(hostport string) bool {
	u := url.URL{Host: hostport}
	return isLoopback(u.Hostname())
}

// isLoopbackOrigin reports whether an Origin header names a page that this machine itself served.
// "null" (a sandboxed page, a file) is not such a page.
func isLoopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	return isLoopback(u.Hostname())
}
