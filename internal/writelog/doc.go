// Package writelog appends a line of JSON for every write that was asked for,
// refused, confirmed, done or failed. Lines say who, what, how it was confirmed
// and which plan; they carry no argument's free value and no secret. Several
// processes may append to one file.
package writelog
