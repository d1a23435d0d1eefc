package main

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/internal/writelog"
)

// writeFlags are those of whatever writes.
type writeFlags struct {
	allow        bool
	actor, log   string
	ttl, timeout time.Duration
}

func (w *writeFlags) add(f *pflag.FlagSet) {
	f.StringVar(&w.actor, "actor", "", "record this plain e-mail address as the actor, for an evidence server that knows people by it")
	f.StringVar(&w.log, "write-log", "", "append every write to this file as JSON lines (default: a file in the user's state folder)")
}

// check refuses flags that can't be used, before anything is opened.
func (w *writeFlags) check() error {
	if w.actor != "" {
		if err := ops.PlainEmail(w.actor); err != nil {
			return tools.Invalid("--actor: %v", err)
		}
	}
	if w.ttl < 0 || w.timeout < 0 {
		return tools.Invalid("--confirm-ttl and --confirm-timeout are lengths of time, such as 5m")
	}
	return nil
}

// openLog opens the log of writes. The demo's are not worth one unless it is named.
func (w *writeFlags) openLog(demo bool) (*writelog.Log, error) {
	path := w.log
	switch {
	case path == "" && demo:
		return nil, nil
	case path == "":
		var err error
		if path, err = writelog.Default(); err != nil {
			return nil, err
		}
	}
	return writelog.Open(path)
}

// open makes what the tools that write work with.
func (w *writeFlags) open(log *slog.Logger, demo bool) (*tools.Writes, error) {
	record, err := w.openLog(demo)
	if err != nil {
		return nil, err
	}
	desk, err := confirm.New(confirm.Options{TTL: w.ttl, Timeout: w.timeout, Folder: confirm.Folder(), Log: log})
	if err != nil {
		record.Close()
		return nil, err
	}
	return &tools.Writes{Desk: desk, Log: record, Email: w.actor}, nil
}
