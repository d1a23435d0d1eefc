// Package writes tests the tools that write through server processes, against a
// real API server (test/cluster).
package writes
