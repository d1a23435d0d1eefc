// Package cluster says how to get a client.Client and whose data it shows:
// a live cluster (kubeconfig or in-cluster), a snapshot (YAML or JSON dumped
// with kubectl) or the demo (an estate that is given to it).
//
// It promises that nothing above can tell the three apart by how they answer:
// the same lists, selectors, pages and errors, and Classify gives one code for
// each. A kind that is not installed, a kind that is forbidden, an object that
// is not there and an empty list are four different answers in all of them.
//
// It never opens a connection at start (a dead cluster costs nothing until it
// is asked), never opens one at all for a snapshot or the demo, never writes
// to a snapshot and never keeps the values of a Secret that it read from one.
//
// The demo is a world of its own: it takes the writes of a promotion, and
// between two requests a Controller does what happens meanwhile. Nothing of it
// outlives the process.
package cluster
