package main

// The modules of these API types are the only published ones of their
// controllers: their CRDs are made by controller-gen. go.mod has the versions.
import (
	_ "github.com/fluxcd/image-automation-controller/api/v1"
	_ "github.com/fluxcd/image-reflector-controller/api/v1"
	_ "github.com/fluxcd/notification-controller/api/v1"
	_ "github.com/fluxcd/source-watcher/api/v2/v1beta1"
)

var apiModules = []string{
	"github.com/fluxcd/image-automation-controller/api",
	"github.com/fluxcd/image-reflector-controller/api",
	"github.com/fluxcd/notification-controller/api",
	"github.com/fluxcd/source-watcher/api/v2",
}
