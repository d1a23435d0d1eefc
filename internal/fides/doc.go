// Package fides is the typed client of the evidence server: one method for
// each endpoint that a promotion reader needs, and pure functions that say what
// a verdict means (hold.go, chain.go). The wire format is fides-facts.md.
//
// It promises that only a well-formed JSON answer of the right shape is an
// answer. Everything else is an *Error with a Code: a page of a proxy, an empty
// body, half an object or a key that is missing is never read as a verdict.
//
// It never follows a redirect, never prints the token or a body, never retries
// and never caches. ChangeGate reads with GET, and yet the server may append a
// segregation-of-duties attestation to the trail: it is not read-only.
package fides
