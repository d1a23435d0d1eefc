// Package demo is the controller of the demo: it does in the embedded estate
// what Hecate and Flux do in a cluster, so that promote, wait, abort, approve
// and poll can be tried with nothing installed.
//
// It works in beats of one second, of the demo's clock, and only when somebody
// reads: there is no goroutine. A pause of any length is worth at most five
// minutes of beats. It promises that what it writes is what the real
// controllers write for the same course of events (fields, phases, reasons,
// messages, and the order of writes), and that the estate is at rest: without a
// write of a person nothing but times and attempts ever changes.
//
// Simulated are: the steps of a Passage, one second each, flux-wait two looks;
// abort; the outcome in Bundle and Gate; eligibility, windows, health, the
// Ready condition; an automatic Gate's own crossings; the evidence step, which
// asks the demo's evidence server and records deployer and outcome there; Flux,
// which follows a push within two seconds; a Beacon's poll, which finds what it
// found before.
//
// Shortened are: a Gate reconciles every second (not every 60), flux-wait looks
// every 2 (not 15), a held evidence step asks every 5 (not its pollInterval).
//
// Where a step fails comes from the estate, never from chance. What failed
// before for this Gate and Bundle fails again at the same step (nobody repaired
// it); flux-wait judges the Kustomization as it stands: one that is suspended
// makes it wait, one that has failed its health check for longer than failAfter
// fails it.
//
// Not simulated are: checks of steps (InvalidSteps), conditions of steps (`if`),
// new versions in a registry, a Canary's analysis (it stays as it is), the
// collection of old Passages and Bundles, events. Steps of which nothing in the
// estate depends (pull requests, charts, HTTP) succeed.
package demo
