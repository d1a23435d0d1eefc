package tools

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// Names of the prompts.
const (
	promptStuck   = "why_is_it_stuck"
	promptPromote = "prepare_promotion"
)

func addPrompts(s *mcpserver.MCPServer) {
	s.AddPrompt(mcp.NewPrompt(promptStuck,
		mcp.WithPromptTitle("Why is it stuck?"),
		mcp.WithPromptDescription("Find the root cause of a Gate that does not move, and who has to act."),
		mcp.WithArgument("gate", mcp.ArgumentDescription("Gate, or a unique part of its name; leave out for every Gate not at rest")),
		mcp.WithArgument("namespace", mcp.ArgumentDescription("namespace; * for all")),
	), func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		target := "every Gate that is not at rest: call explain_gate without a gate, then explain each that is Failed or Blocked"
		gate, err := promptArgument(req, "gate")
		if err != nil {
			return nil, err
		}
		if gate != "" {
			target = fmt.Sprintf("Gate %s: call explain_gate with gate %q", gate, gate)
		}
		namespace, err := promptArgument(req, "namespace")
		if err != nil {
			return nil, err
		}
		if namespace != "" {
			target += fmt.Sprintf(" and namespace %q", namespace)
		}
		return prompt("Find out why it is stuck.", fmt.Sprintf(`Find out why promotion is stuck at %s.

1. Read state, blockers (in the order to act), chain and rootCauses. If a root cause has an object that a tool can look at, follow nextSteps until nothing new comes.
2. Answer in this order: the root cause in one sentence with its object; the chain from symptom to cause, one line a link; what has to happen, by whom, in which order, with the commands of humanSteps for the person to run; what could not be read (incomplete).
3. Do not propose a rollback as the way forward, and do not propose promoting again where the answer says Stalled.`, target)), nil
	})
	s.AddPrompt(mcp.NewPrompt(promptPromote,
		mcp.WithPromptTitle("Prepare a promotion"),
		mcp.WithPromptDescription("Check whether a Bundle would cross a Gate and gather what a person needs to decide."),
		mcp.WithArgument("gate", mcp.ArgumentDescription("Gate, or a unique part of its name"), mcp.RequiredArgument()),
		mcp.WithArgument("bundle", mcp.ArgumentDescription("Bundle; leave out for the newest that is not in yet")),
		mcp.WithArgument("namespace", mcp.ArgumentDescription("namespace")),
	), func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		var args [3]string
		for i, name := range []string{"gate", "bundle", "namespace"} {
			v, err := promptArgument(req, name)
			if err != nil {
				return nil, err
			}
			args[i] = v
		}
		if args[0] == "" {
			return nil, fmt.Errorf("argument gate is required: the Gate to promote to, or a unique part of its name")
		}
		call := fmt.Sprintf("gate %q", args[0])
		if args[1] != "" {
			call += fmt.Sprintf(", bundle %q", args[1])
		}
		if args[2] != "" {
			call += fmt.Sprintf(", namespace %q", args[2])
		}
		return prompt("Prepare a promotion for a person to decide.", fmt.Sprintf(`Prepare a promotion: call preview_promotion with %s.

1. If it is refused, list every refusal in order with what removes it and who has to act; for UpstreamNotCleared call explain_gate for the root cause.
2. Otherwise lay the decision before the person: what is in the Bundle, what the Gate holds now, every warning, what the evidence says, who may not approve, when the window is open.
3. Give the person's commands from humanSteps, or offer promote_bundle where the server has it. Do not run the commands, and do not say that it will succeed: steps of the crossing can still fail.`, call)), nil
	})
}

// promptArgument checks an argument as the tools do: the library enforces
// nothing, and the value becomes part of what a model reads.
func promptArgument(req mcp.GetPromptRequest, name string) (string, error) {
	v := req.Params.Arguments[name]
	if v == "" {
		return "", nil
	}
	if e := checkString(name, v); e != nil {
		return "", fmt.Errorf("%s (%s)", e.Message, e.Detail)
	}
	return v, nil
}

func prompt(description, text string) *mcp.GetPromptResult {
	return mcp.NewGetPromptResult(description, []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))})
}
