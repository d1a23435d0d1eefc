package cluster

import (
	"net/http"
	"slices"
	"strings"
)

// request is what the API server would call a request.
type request struct {
	verb      string // get, list, watch, create, update, patch, delete or deletecollection
	resource  string // "gates", "bundles/status", or the path of what is no resource
	continued bool   // a LIST's second or later page
}

// parse reads /api/v1/… and /apis/group/version/…, as Kubernetes' API
// conventions lay them out.
func parse(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default: // discovery, health, version
		return request{verb: strings.ToLower(r.Method), resource: r.URL.Path}
	}
	// namespaces/x/resource is a resource in x; namespaces/x and its own subresources are of the namespace.
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		parts = parts[2:]
	}
	q := request{resource: parts[0]}
	if len(parts) > 2 {
		q.resource += "/" + parts[2]
	}
	named := len(parts) > 1
	query := r.URL.Query()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch watch := query.Get("watch"); {
		case watch == "1" || watch == "true":
			q.verb = "watch"
		case named:
			q.verb = "get"
		default:
			q.verb, q.continued = "list", query.Get("continue") != ""
		}
	case http.MethodPost:
		q.verb = "create"
	case http.MethodPut:
		q.verb = "update"
	case http.MethodDelete:
		if q.verb = "delete"; !named {
			q.verb = "deletecollection"
		}
	default:
		q.verb = strings.ToLower(r.Method)
	}
	return q
}

// is says whether a request has this verb and resource; "" is any.
func (q request) is(verb, resource string) bool {
	return (verb == "" || verb == q.verb) && (resource == "" || resource == q.resource)
}
