// Package tools is the house of the MCP tools: one file a tool, each a typed
// function from an input struct to an output struct, from which the JSON
// schemas are derived.
//
// It promises that every tool answers with the result contract (summary, scope,
// facts with codes, next steps) or with the error contract (one coded object),
// that unknown and malformed arguments are refused with what is valid, that no
// panic and no secret leaves, and that the MCP server, the command line and the
// tests call the same registry.
//
// It decides nothing about promotions: that is internal/ops. mcp-go is imported
// in mcp.go and its neighbours prompts.go and resources.go only; a tool knows
// no SDK.
package tools
