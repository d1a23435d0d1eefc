// Package locate finds where in a YAML file a thing stands: the document of an
// object, the line of a field, the entry of a kustomization.
//
// It promises 1-based lines as a text editor and Git count them (broken by line
// feeds only), an answer in time linear in the file, and a Problem with a line
// for a file that is not sound YAML. Aliases and merge keys are followed along
// the asked path only; they are never expanded, so a small file can't grow.
//
// It never panics on any input, never quotes a value in a message, and never
// reads or writes a file.
package locate
