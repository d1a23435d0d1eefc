package examples_test

import (
	"encoding/json"
	"slices"
	"testing"
)

// flags are those a client's configuration may use, and whether they take a
// value.
var flags = map[string]bool{"--context": true, "-n": true, "--kubeconfig": true, "--snapshot": true, "--demo": false}

type server struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func TestClients(t *testing.T) {
	for file, outer := range map[string]string{
		"clients/claude-code/.mcp.json":                     "mcpServers",
		"clients/claude-desktop/claude_desktop_config.json": "mcpServers",
		"clients/vscode/.vscode/mcp.json":                   "servers",
		"clients/cursor/.cursor/mcp.json":                   "mcpServers",
		"clients/demo/.mcp.json":                            "mcpServers",
	} {
		t.Run(file, func(t *testing.T) {
			// JSON proper: a client does not read YAML, so neither does this test.
			var config map[string]map[string]server
			if err := json.Unmarshal(read(t, file), &config); err != nil {
				t.Fatal(err)
			}
			if len(config) != 1 || len(config[outer]) != 1 {
				t.Fatalf("want the key %q with one server in it, got %v", outer, config)
			}
			for name, s := range config[outer] {
				if s.Command != "hecate-mcp" {
					t.Errorf("%s: command is %q", name, s.Command)
				}
				if s.Type != "" && s.Type != "stdio" {
					t.Errorf("%s: type is %q", name, s.Type)
				}
				checkArgs(t, name, s.Args)
				if demo := slices.Contains(s.Args, "--demo"); demo != (file == "clients/demo/.mcp.json") {
					t.Errorf("%s: --demo is %t", name, demo)
				}
			}
		})
	}
}

func checkArgs(t *testing.T, name string, args []string) {
	t.Helper()
	for i := 0; i < len(args); i++ {
		value, known := flags[args[i]]
		switch {
		case !known:
			t.Errorf("%s: argument %q is no known flag", name, args[i])
		case value && (i+1 == len(args) || flags[args[i+1]]):
			t.Errorf("%s: %s lacks its value", name, args[i])
		case value:
			i++
		}
	}
}
