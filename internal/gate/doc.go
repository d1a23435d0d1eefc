// Package gate holds the rules of a Gate: may this Bundle enter (Judge), may a
// crossing start now and if not when (CheckWindows), and what would be created
// (BuildPassage, EvidenceStep, the digests that pin a plan).
//
// It promises the answers of the upstream controller (release 0.8.1) for the
// same objects and the same moment, and to name every obstacle instead of only
// the first. Every result is a function of the arguments; time is one of them.
//
// It never talks to a cluster or a server, never reads a clock, never changes
// an argument and keeps no state. Time zone data is compiled in, so that an
// answer does not depend on the machine it is asked on.
package gate

// The names of IANA zones resolve on machines without a zoneinfo directory.
import _ "time/tzdata"
