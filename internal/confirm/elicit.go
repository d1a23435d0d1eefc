package confirm

import (
	"context"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// question is the key of the one request in an input_required result, and the
// one property of its form.
const question = "confirm"

// form asks for one boolean.
func (s shown) params() mcp.ElicitationParams {
	return mcp.ElicitationParams{
		Mode:    mcp.ElicitationModeForm,
		Message: s.form(),
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{question: map[string]any{
				"type":        "boolean",
				"title":       "Do exactly this",
				"description": "Set it to confirm what is shown above. Left unset, nothing is done.",
				"default":     false,
			}},
			"required": []string{question},
		},
	}
}

// judge reads an answer: nil only for accept with the boolean confirm: true.
// The library checks nothing of it against the schema.
func judge(r *mcp.ElicitationResult) *Declined {
	switch {
	case r == nil:
		return &Declined{Reason: Unreadable, Via: ViaElicitation}
	case r.Action == mcp.ElicitationResponseActionDecline:
		return &Declined{Reason: Said, Via: ViaElicitation}
	case r.Action == mcp.ElicitationResponseActionCancel:
		return &Declined{Reason: Cancelled, Via: ViaElicitation}
	case r.Action != mcp.ElicitationResponseActionAccept:
		return &Declined{Reason: Unreadable, Via: ViaElicitation}
	}
	content, _ := r.Content.(map[string]any)
	if yes, ok := content[question].(bool); !ok || !yes {
		return &Declined{Reason: NotConfirmed, Via: ViaElicitation}
	}
	return nil
}

// peer is what the client says of itself: its name and version, and whether
// it shows forms. In the modern era each request says so by itself.
func peer(ctx context.Context) (name string, forms bool) {
	var info mcp.Implementation
	var can *mcp.ElicitationCapability
	if server.IsModernRequest(ctx) {
		r := server.RequestProtocolInfoFromContext(ctx)
		if r.ClientInfo != nil {
			info = *r.ClientInfo
		}
		if r.ClientCapabilities != nil {
			can = r.ClientCapabilities.Elicitation
		}
	} else if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		info, can = s.GetClientInfo(), s.GetClientCapabilities().Elicitation
	}
	name = info.Name
	if info.Version != "" {
		name += " " + info.Version
	}
	// An empty capability means forms only.
	return plain(name, maxClient), can != nil && (can.Form != nil || can.URL == nil)
}

// elicit asks a legacy client and waits until it answers or ctx ends. The
// session is not trusted to stop waiting by itself: what it brings later goes
// nowhere.
func elicit(ctx context.Context, params mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
	s := server.ServerFromContext(ctx)
	if s == nil {
		return nil, errors.New("no MCP server in the context")
	}
	type answer struct {
		result *mcp.ElicitationResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: fmt.Errorf("panic while asking the client: %v", p)}
			}
			answered <- a
		}()
		a.result, a.err = s.RequestElicitation(ctx, mcp.ElicitationRequest{
			Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)},
			Params:  params,
		})
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answered:
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return a.result, a.err
	}
}
