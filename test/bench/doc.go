// Package bench measures what users wait for and pay: the board against the
// raw LISTs that it rests on, and the start of the server against an empty one
// that links the same libraries. Numbers that are compared come from one run on
// one machine, next to each other; ratios travel, milliseconds do not.
//
// It holds benchmarks only, no limits: tests with limits are in test/e2e. The
// board needs the API server of test/cluster and is skipped without it.
package bench
