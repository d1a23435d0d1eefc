package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
)

// Hints are the four annotations of a tool; all are always given, since the
// protocol's defaults say destructive.
type Hints struct {
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// reads are the hints of a tool that only reads the cluster.
var reads = Hints{ReadOnly: true, Idempotent: true}

// About is what a tool says of itself.
type About struct {
	Name        string
	Title       string
	Description string
	Toolset     string
	Hints       Hints
	// Writes marks a tool that only a server with --allow-writes has.
	Writes bool
}

// Tool is one tool, self-describing.
type Tool struct {
	About
	InputSchema json.RawMessage
	// OutputSchema is what the list of tools carries, Published the same in
	// full: see lean.
	OutputSchema json.RawMessage
	Published    json.RawMessage
	// call runs the tool on validated arguments.
	call  func(ctx context.Context, env *Env, args json.RawMessage) (any, error)
	input *jsonschema.Schema
	// arguments are the valid argument names, in the schema's order.
	arguments []string
	// text renders the output for people.
	text func(w *Writer, out any)
}

// New makes a Tool of a typed function. The schemas come from In and Out; a
// type that has no portable schema panics, which a test of every tool holds.
func New[In, Out any](about About, handler func(ctx context.Context, env *Env, in In) (Out, error), text func(w *Writer, out Out)) Tool {
	var in In
	var out Out
	t := Tool{About: about, InputSchema: marshalSchema(schemaOf(in)), Published: marshalSchema(outputSchema(out)), OutputSchema: marshalSchema(lean(outputSchema(out), out))}
	t.input, t.arguments = compile(about.Name, t.InputSchema)
	t.call = func(ctx context.Context, env *Env, args json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, invalid("arguments: %v", err)
		}
		return handler(ctx, env, in)
	}
	t.text = func(w *Writer, v any) { text(w, v.(Out)) }
	return t
}

// Arguments lists the names of the tool's arguments, sorted.
func (t Tool) Arguments() []string { return slices.Clone(t.arguments) }

// Answer is what a call gave: the output or the coded error, and its JSON,
// which is the same for every surface.
type Answer struct {
	Out  any
	Err  *Error
	JSON json.RawMessage
	// Question asks a modern client's person; it is then all of the answer.
	Question *mcp.CallToolResult
}

// Call validates the arguments (a JSON object; nil means none) and runs the
// tool. It never panics and always has JSON.
func (t Tool) Call(ctx context.Context, env *Env, args json.RawMessage) (a Answer) {
	defer func() {
		if r := recover(); r != nil {
			// The stack is for whoever runs the server; the caller learns that
			// it is this server's fault and nothing else.
			logPanic(ctx, t.Name, r, debug.Stack())
			a = failed(&Error{Code: Internal, Message: "the tool " + t.Name + " failed unexpectedly; the server's log has more"})
		}
	}()
	if len(bytes.TrimSpace(args)) == 0 || bytes.Equal(bytes.TrimSpace(args), []byte("null")) {
		args = json.RawMessage("{}")
	}
	if err := t.validate(args); err != nil {
		return failed(err)
	}
	if t.Writes && env.Writes == nil {
		return failed(disabled(t.Name))
	}
	timeout := env.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if t.Writes {
		timeout = writeTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if (t.Toolset != GitOps || t.Writes) && env.NoSource != nil {
		return failed(toError(env.NoSource))
	}
	r := requestOf(ctx)
	r.args = args
	out, err := t.call(withRequest(ctx, r), env, args)
	var question *confirm.InputRequired
	if errors.As(err, &question) {
		return Answer{Question: question.Result}
	}
	if err != nil {
		if ctx.Err() != nil && t.Toolset == GitOps {
			return failed(&Error{Code: Timeout, Retryable: true, Message: fmt.Sprintf("the repository was not done within %s; what was built so far is remembered: ask again", timeout)})
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", err, ctx.Err())
		}
		return failed(toError(err))
	}
	raw, err := encode(out)
	if err != nil {
		return failed(&Error{Code: Internal, Message: "the answer could not be encoded: " + err.Error()})
	}
	return Answer{Out: out, JSON: raw}
}

func failed(e *Error) Answer {
	raw, err := encode(e)
	if err != nil {
		raw = json.RawMessage(`{"code":"Internal","message":"the error could not be encoded","retryable":false}`)
	}
	return Answer{Err: e, JSON: raw}
}

// encode writes compact JSON without HTML escapes: the reader is a model or a
// person, and < stands in many a message.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
