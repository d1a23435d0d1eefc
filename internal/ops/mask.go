package ops

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Masked stands for a value that may be secret.
const Masked = "***"

// secretKey names keys whose values are secret whatever they look like.
var secretKey = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?$|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|authorization|bearer|cookie|^auth$|signature|client[-_]?cert|kubeconfig)`)

// referenceKey names keys that only point at a secret.
var referenceKey = regexp.MustCompile(`(?i)(ref|name|namespace|url|enabled|type|path|kind)$`)

// shape is what a secret looks like whatever its key is, anywhere in a text.
type shape struct {
	// needs is text of which the shape needs some, none for always: to look for
	// that costs a tenth of the match, and a board cleans hundreds of texts.
	needs   []string
	pattern *regexp.Regexp
	// keep is what stays of a match before the mask, after what stays behind it.
	keep, after string
}

var secretShapes = []shape{
	{[]string{"-----BEGIN "}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), "", ""},
	{[]string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), "", ""},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, regexp.MustCompile(`\b(ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}\b`), "", ""},
	{[]string{"github_pat_"}, regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}\b`), "", ""},
	{[]string{"gl"}, regexp.MustCompile(`\bgl(pat|dt|ptt|rt)-[A-Za-z0-9_-]{16,}`), "", ""},
	{[]string{"xox"}, regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`), "", ""},
	{[]string{"AKIA", "ASIA"}, regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`), "", ""},
	{[]string{"AIza"}, regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`), "", ""},
	{[]string{"fides_"}, regexp.MustCompile(`\bfides_[0-9a-f]{6,}_[0-9a-f]{16,}\b`), "", ""},
	{[]string{"sk-"}, regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`), "", ""},
	{[]string{}, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/_.=~-]{16,}`), "", ""},
	{[]string{"=", ":"}, regexp.MustCompile(`(?i)\b(token|access_token|refresh_token|api[_-]?key|password|passwd|client_secret|secret|sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token)("?\s*[=:]\s*"?)[^\s&"',;]+`), "${1}${2}", ""},
	{[]string{"://"}, regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"']*@`), "${1}", "@"},
}

// maskText masks what looks like a secret inside a text: credentials of URLs,
// tokens by their shape, values behind key= and key: .
func maskText(s string) string {
	for _, x := range secretShapes {
		if len(x.needs) > 0 && !slices.ContainsFunc(x.needs, func(part string) bool { return strings.Contains(s, part) }) {
			continue
		}
		s = x.pattern.ReplaceAllString(s, x.keep+Masked+x.after)
	}
	return s
}

// maskJSON renders any JSON compactly with secrets masked, by key name and by
// shape, bounded to max bytes. What is not JSON gives "".
func maskJSON(raw []byte, max int) string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return ""
	}
	out, err := json.Marshal(maskValue("", v))
	if err != nil {
		return ""
	}
	return clean(string(out), max)
}

func maskValue(name string, v any) any {
	secret := name != "" && secretKey.MatchString(name) && !referenceKey.MatchString(name)
	switch v := v.(type) {
	case map[string]any:
		// {name: "X", value: "…"}: a variable's value goes by the variable's name.
		if n, ok := v["name"].(string); ok {
			if _, has := v["value"]; has && secretKey.MatchString(n) {
				v["value"] = Masked
			}
		}
		for k := range v {
			v[k] = maskValue(k, v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = maskValue(name, v[i])
		}
		return v
	case string:
		if secret && v != "" {
			return Masked
		}
		// JSON inside a string, such as the body of an answer.
		if t := strings.TrimSpace(v); len(t) > 1 && (t[0] == '{' || t[0] == '[') {
			var inner any
			if json.Unmarshal([]byte(t), &inner) == nil {
				if out, err := json.Marshal(maskValue("", inner)); err == nil {
					return string(out)
				}
			}
		}
		return maskText(v)
	default:
		if secret && v != nil {
			if _, isBool := v.(bool); !isBool {
				return Masked
			}
		}
		return v
	}
}

// Clean makes free text safe to show: secrets masked, control, ANSI and
// bidirectional characters removed, bounded to max characters.
func Clean(s string, max int) string { return clean(s, max) }

// CleanCause is Clean for the text of an error: a long one loses its middle, for
// its cause stands at the end.
func CleanCause(s string, max int) string { return cleanCause(s, max) }
