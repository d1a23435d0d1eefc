// Package ops is the operations layer of Hecate: it answers why a Gate is
// where it is, what happened, who allowed it and whether a promotion would
// cross. Surfaces format, ops decides: together with internal/gate it is the
// only home of the rules.
//
// Reads return the API types or derived types with stable codes, never prose
// that has to be parsed. Every list is in a deterministic order. What could
// not be read is part of the answer (Incomplete), never an absence.
//
// Loading is apart from judging: load.go does the requests, whose number does
// not depend on the size of the estate; the rest takes values and gives values.
//
// It knows nothing of MCP, opens no connection of its own besides the client
// and the evidence server that it is given, and writes nothing.
package ops
