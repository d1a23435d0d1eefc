// Package fidestest is a small evidence server in process, for tests and for
// the demo. It answers as fides-facts.md has it, the traps included: sha is a
// prefix match, errors are text/plain, reading the change gate may write, the
// list of artifacts fails under row-level security.
//
// Its data is a State, a plain struct that a YAML file can carry (Parse). It
// listens nowhere: Handler serves it, HTTPClient asks it without a network.
//
// It promises the wire format and the verdicts, not the server's storage: the
// hash chain is only as the State says, and nothing outlives the process.
package fidestest
