// Package cluster gives tests a real Kubernetes API server: etcd and
// kube-apiserver as processes of their own on loopback ports, with RBAC, users
// by token and the CRDs installed. One instance serves a whole test binary.
//
// Clients talk to a reverse proxy in front of the API server, which counts
// every request (Requests) and can be told to fail one (Inject). The harness
// itself goes past the proxy, so that only the tested code is counted.
//
// There is no controller-manager: a Namespace never finishes deleting and
// nothing is garbage collected. So each test takes a Namespace of its own.
// Counts and faults belong to the instance: tests that use them must not be
// parallel. It never reads the user's kubeconfig and never leaves loopback.
package cluster
