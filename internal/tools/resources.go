package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

const (
	scheme       = "hecate://"
	catalogueURI = scheme + "catalogue"
	mimeJSON     = "application/json"
)

// kindResource is a template whose resource is what a tool answers.
type kindResource struct {
	plural, argument, title, tool string
}

var kindResources = []kindResource{
	{"gates", "gate", "Explanation of one Gate", "explain_gate"},
	{"bundles", "bundle", "One Bundle and where it has been", "list_bundles"},
	{"passages", "passage", "One attempt step by step", "get_passage"},
	{"beacons", "beacon", "One Beacon", "list_beacons"},
}

func addResources(s *mcpserver.MCPServer, env *Env) {
	s.AddResource(mcp.NewResource(catalogueURI, "catalogue", mcp.WithResourceTitle("Catalogue of codes"),
		mcp.WithResourceDescription("Every code of states, blockers, chains, warnings, holds, audit, evidence and errors with its meaning."), mcp.WithMIMEType(mimeJSON)),
		func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			raw, err := encode(Catalogue())
			if err != nil {
				return nil, err
			}
			return contents(req.Params.URI, raw), nil
		})
	for _, k := range kindResources {
		s.AddResourceTemplate(mcp.NewResourceTemplate(scheme+"{namespace}/"+k.plural+"/{name}", k.plural, mcp.WithTemplateTitle(k.title),
			mcp.WithTemplateDescription("What "+k.tool+" answers for this object, as JSON."), mcp.WithTemplateMIMEType(mimeJSON)),
			func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				namespace, name, ok := splitURI(req.Params.URI, k.plural)
				if !ok {
					return nil, fmt.Errorf("%w: %s is not of the form %s{namespace}/%s/{name}", mcpserver.ErrResourceNotFound, ops.Clean(req.Params.URI, 200), scheme, k.plural)
				}
				args, err := json.Marshal(map[string]string{"namespace": namespace, k.argument: name})
				if err != nil {
					return nil, err
				}
				tool, err := Find(k.tool)
				if err != nil {
					return nil, err
				}
				a := tool.Call(ctx, env, args)
				switch {
				case a.Err != nil && (a.Err.Code == NotFound || a.Err.Code == InvalidArgument):
					return nil, fmt.Errorf("%w: %s", mcpserver.ErrResourceNotFound, a.Err.Message)
				case a.Err != nil:
					return nil, a.Err
				}
				// A tool takes part of a name, a URI names one object.
				names, err := env.Ops.Names(ctx, k.argument, env.namespace(namespace))
				if err != nil {
					return nil, toError(err)
				}
				if !slices.Contains(names, name) {
					return nil, fmt.Errorf("%w: no object has exactly the name %s in namespace %s", mcpserver.ErrResourceNotFound, name, namespace)
				}
				return contents(req.Params.URI, a.JSON), nil
			})
	}
}

func contents(uri string, raw json.RawMessage) []mcp.ResourceContents {
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mimeJSON, Text: string(raw)}}
}

func splitURI(uri, plural string) (namespace, name string, ok bool) {
	rest, found := strings.CutPrefix(uri, scheme)
	if !found {
		return "", "", false
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 || parts[1] != plural || parts[0] == "" || parts[2] == "" {
		return "", "", false
	}
	return parts[0], parts[2], true
}

// completer offers names for prompts and resource templates.
type completer struct{ env *Env }

// maxCompletions is the protocol's limit.
const maxCompletions = 100

func (c completer) CompletePromptArgument(ctx context.Context, _ string, arg mcp.CompleteArgument, known mcp.CompleteContext) (*mcp.Completion, error) {
	return c.complete(ctx, arg.Name, arg.Value, known.Arguments["namespace"])
}

func (c completer) CompleteResourceArgument(ctx context.Context, uri string, arg mcp.CompleteArgument, known mcp.CompleteContext) (*mcp.Completion, error) {
	name := arg.Name
	if name == "name" {
		for _, k := range kindResources {
			if strings.Contains(uri, "/"+k.plural+"/") {
				name = k.argument
			}
		}
	}
	return c.complete(ctx, name, arg.Value, known.Arguments["namespace"])
}

// complete lists names that begin with the value; what cannot be read has none.
func (c completer) complete(ctx context.Context, argument, value, namespace string) (*mcp.Completion, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	ns := c.env.namespace(namespace)
	var names []string
	var err error
	if argument == "namespace" {
		names, err = c.env.Ops.Namespaces(ctx)
	} else {
		names, err = c.env.Ops.Names(ctx, argument, ns)
	}
	if err != nil {
		return &mcp.Completion{Values: []string{}}, nil
	}
	out := &mcp.Completion{Values: []string{}}
	for _, n := range names {
		if !strings.HasPrefix(n, value) {
			continue
		}
		out.Total++
		if len(out.Values) < maxCompletions {
			out.Values = append(out.Values, n)
		}
	}
	out.HasMore = out.Total > len(out.Values)
	return out, nil
}
