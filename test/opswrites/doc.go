// Package opswrites tests the writes of internal/ops against a real API server
// (test/cluster), as the users that upstream's roles give: what it does to names,
// UIDs, conflicts and answers that are lost is nothing that a fake could vouch for.
package opswrites
