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
// It knows nothing of MCP and opens no connection of its own besides the client
// and the evidence server that it is given.
//
// # Writes
//
// A write is two steps: a Plan, which only reads, and the write itself, which
// reads again, compares (DriftedError), and acts. Promote, Abort, Approve and
// Poll are all there is.
//
// One crossing at a time is kept by the name of the Passage: it is computed from
// the Gate and its newest Passage (see slot), so that promotions which start from
// the same state ask the API server for the same name, which it gives once. That
// needs the right to create Passages and nothing else, holds for any number of
// processes, and makes a repeated request harmless: it meets its own Passage,
// which it knows by the call's id. Deleting a Gate's newest Passage in the moment
// between two plans takes the guarantee away; nobody but a person does that.
//
// It cannot keep out what does not ask this way: a Passage that somebody's
// kubectl, or the controller of an automatic Gate, opens in the same instant. A
// promotion therefore looks once more after it, and says ConcurrentPassages with
// the other's name; explain_gate says the same for as long as both run.
package ops
