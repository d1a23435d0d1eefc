// Package confirm puts a plan before a person and gives it back once that
// person has accepted exactly this plan. It denies by default: no answer, a
// wrong answer, an answer to something else and a second use of an answer are
// all no.
//
// There are two ways to ask. A client that declares form elicitation is asked
// through it: in the legacy era by a request of the server, in the modern era
// by an input_required result whose state is sealed, single-use and bound to
// the tool, its arguments, the principal and the plan. Everything else waits
// for `hecate-mcp confirm` on a terminal of the same user, which speaks to the
// server through a Unix socket in a folder that is private to the user.
//
// Nothing that a tool returns is a key to a confirmation, and nothing survives
// the process. An accepted form proves that the client said yes, not that a
// person did; a terminal can be driven by whatever has a shell of the user.
package confirm
