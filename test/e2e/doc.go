// Package e2e tests the binary from outside: hecate-mcp as a process of its
// own, asked by the library's client over stdio and over HTTP and by the
// shell, against a real API server (test/cluster).
//
// It holds what only the whole can show: that every tool answers on every
// surface as its schema says, that a live cluster gives the same codes as a
// snapshot of it, what users with different rights learn, what an API server
// that is dead, slow, forgetful or without Hecate leads to, and how many
// requests an answer costs. The rules themselves are tested in internal/ops.
//
// Without the API server's binaries its tests are skipped. It asks nothing
// outside loopback. HECATE_MCP_BINARY names a binary to test instead of one
// that is built for the run.
package e2e
