package tools

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// NewServer makes the MCP server of an environment: the tools, the prompts,
// the resources and their completions. It makes no request: some clients start
// a process only to ask what there is.
func NewServer(env *Env, tools []Tool, version string, log *slog.Logger) *mcpserver.MCPServer {
	complete := completer{env}
	instructions := Instructions
	if env.Writes != nil {
		instructions = writeInstructions
	}
	hidden := map[string]bool{}
	hooks := &mcpserver.Hooks{}
	hooks.AddAfterListTools(func(_ context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
		result.Tools = slices.DeleteFunc(result.Tools, func(t mcp.Tool) bool { return hidden[t.Name] })
	})
	s := mcpserver.NewMCPServer("hecate-mcp", version,
		mcpserver.WithTitle("Hecate promotions"),
		mcpserver.WithDescription("Why Gates are stuck, what happened, what would cross: promotions for Flux CD."),
		mcpserver.WithInstructions(instructions),
		mcpserver.WithToolCapabilities(false),
		mcpserver.WithPromptCapabilities(false),
		mcpserver.WithResourceCapabilities(false, false),
		mcpserver.WithCompletions(),
		mcpserver.WithHooks(hooks),
		mcpserver.WithPromptCompletionProvider(complete),
		mcpserver.WithResourceCompletionProvider(complete),
	)
	for _, t := range tools {
		s.AddTool(t.definition(), t.handler(env, log))
	}
	if env.Writes == nil {
		// Not listed, but a model that asks anyway learns why it may not.
		for _, t := range All() {
			if t.Writes {
				hidden[t.Name] = true
				s.AddTool(t.definition(), t.handler(env, log))
			}
		}
	}
	addPrompts(s)
	addResources(s, env)
	return s
}

// definition is the tool as the protocol lists it.
func (t Tool) definition() mcp.Tool {
	def := mcp.Tool{Name: t.Name, Title: t.Title, Description: t.Description, RawInputSchema: t.InputSchema, RawOutputSchema: t.OutputSchema}
	def.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &t.Hints.ReadOnly, DestructiveHint: &t.Hints.Destructive,
		IdempotentHint: &t.Hints.Idempotent, OpenWorldHint: &t.Hints.OpenWorld}
	return def
}

// Definitions is the tools' list as a client gets it, compact JSON.
func Definitions(tools []Tool) (json.RawMessage, error) {
	defs := make([]mcp.Tool, 0, len(tools))
	for _, t := range tools {
		defs = append(defs, t.definition())
	}
	return encode(defs)
}

// handler runs the tool for the protocol. An answer stands in structuredContent
// and, the same JSON, in content: clients show the model one or the other. An
// error stands in content alone, since clients validate structuredContent
// against the output schema even then.
func (t Tool) handler(env *Env, log *slog.Logger) mcpserver.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		start := time.Now()
		args, err := rawArguments(req)
		var a Answer
		if err != nil {
			a = failed(invalid("the arguments could not be read: %v", err))
		} else {
			a = t.Call(withRequest(ctx, request{mcp: req}), env, args)
		}
		code := "ok"
		if a.Question != nil {
			code = "question"
		}
		if a.Err != nil {
			code = string(a.Err.Code)
		}
		log.LogAttrs(ctx, slog.LevelInfo, "tool call", slog.String("tool", t.Name), slog.Duration("duration", time.Since(start)),
			slog.String("code", code), slog.Int("bytesIn", len(args)), slog.Int("bytesOut", len(a.JSON)))
		if a.Question != nil {
			return a.Question, nil
		}
		result := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(string(a.JSON))}, IsError: a.Err != nil}
		if a.Err == nil {
			result.StructuredContent = a.JSON
		}
		return result, nil
	}
}

// rawArguments are the bytes that the client sent, or the nearest to them.
func rawArguments(req mcp.CallToolRequest) (json.RawMessage, error) {
	if len(req.Params.RawArguments) > 0 {
		return req.Params.RawArguments, nil
	}
	if req.Params.Arguments == nil {
		return nil, nil
	}
	return json.Marshal(req.Params.Arguments)
}
