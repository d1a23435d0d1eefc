// Package server carries an MCP server over its two transports: stdio for a client that starts the
// binary, streamable HTTP on loopback for clients that connect to it.
//
// It promises that a request which may not be served never reaches a tool: a foreign Origin or Host, a
// body over the limit, a session that this process did not hand out, a session that expired, another
// principal's session, a cancellation of somebody else's call. It promises that a client's disconnect,
// SIGTERM or SIGINT end the process cleanly, within a deadline, whatever the handlers do.
//
// It knows nothing of Gates or tools: what is served comes in as a *server.MCPServer of mcp-go. It
// never listens on anything but loopback, because it does not authenticate yet; it never writes to
// stdout except protocol messages, never logs bodies, arguments or session ids of its own accord, and
// never sends a CORS header.
package server
