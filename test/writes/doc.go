// Package writes tests what writes, against a real kube-apiserver and with real
// server processes: one crossing at a time, confirmations that hold, plans that
// drift, refusals. Nothing here is timed; ROUNDS (the environment variable
// HECATE_MCP_ROUNDS) says how often the races are run.
package writes
