package render

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// Pool builds in worker processes. They are started when they are needed,
// replaced when they are stopped, and end with Close.
type Pool struct {
	command []string
	timeout time.Duration
	slots   chan *process // one entry a worker; nil is one not started yet
	close   sync.Once
	done    chan struct{}
}

// process is a running worker.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	enc *gob.Encoder
	dec *gob.Decoder
}

// NewPool makes a pool of n workers, each started by the command, which must call
// Worker. A build that takes longer than the timeout ends with its worker.
func NewPool(command []string, n int, timeout time.Duration) (*Pool, error) {
	if len(command) == 0 || n < 1 || timeout <= 0 {
		return nil, errors.New("a pool needs a command, at least one worker and a timeout")
	}
	p := &Pool{command: command, timeout: timeout, slots: make(chan *process, n), done: make(chan struct{})}
	for range n {
		p.slots <- nil
	}
	return p, nil
}

// Close stops the workers that are idle now, and each other after its build.
func (p *Pool) Close() {
	p.close.Do(func() {
		close(p.done)
		for range cap(p.slots) {
			select {
			case w := <-p.slots:
				w.stop()
			default:
			}
		}
	})
}

// Warm starts the workers that are not running, and does not wait for them: while
// a tree is read they get ready to build.
func (p *Pool) Warm() {
	for range cap(p.slots) {
		select {
		case w := <-p.slots:
			if w == nil {
				w, _ = start(p.command) // a build that fails, too, says why
			}
			p.release(w)
		default: // those that are left are building
			return
		}
	}
}

// Build hands a build to a worker.
func (p *Pool) Build(ctx context.Context, r Request) Result {
	obj, err := json.Marshal(r.Kustomization)
	if err != nil {
		return failed(RenderFailed, fmt.Sprintf("the Kustomization can't be encoded: %v", err))
	}
	var w *process
	select {
	case w = <-p.slots:
	case <-ctx.Done():
		return failed(Timeout, "the build was cancelled")
	case <-p.done:
		return failed(RenderFailed, "the builder is closed")
	}
	if w == nil {
		if w, err = start(p.command); err != nil {
			p.slots <- nil
			return failed(RenderFailed, fmt.Sprintf("the worker could not be started: %v", err))
		}
	}
	type reply struct {
		a   answer
		err error
	}
	replies := make(chan reply, 1)
	go func() {
		var a answer
		err := w.enc.Encode(order{r.Root, r.Path, r.Origins, obj})
		if err == nil {
			err = w.dec.Decode(&a)
		}
		replies <- reply{a, err}
	}()
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case got := <-replies:
		if got.err != nil {
			p.release(nil)
			return w.crashed(got.err)
		}
		p.release(w)
		return got.a.Result
	case <-timer.C:
		w.stop()
		p.release(nil)
		return failed(Timeout, fmt.Sprintf("the build did not end within %s and was stopped", p.timeout))
	case <-ctx.Done():
		w.stop()
		p.release(nil)
		return failed(Timeout, "the build was cancelled")
	}
}

// release gives a slot back, or ends its worker when the pool was closed.
func (p *Pool) release(w *process) {
	select {
	case <-p.done:
		w.stop()
	default:
		p.slots <- w
	}
}

func failed(code Code, message string) Result {
	return Result{Err: &Error{Code: code, Message: message}}
}

// start runs a worker with an empty environment: no PATH, no proxies, no
// credentials. What it writes to standard error may quote the repository and is
// dropped.
func start(command []string) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = []string{"PATH="}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, in, gob.NewEncoder(in), gob.NewDecoder(out)}, nil
}

// stop kills a worker. Its exit status says no more than that.
func (w *process) stop() {
	if w == nil {
		return
	}
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// crashed says why a worker ended on its own.
func (w *process) crashed(cause error) Result {
	_ = w.in.Close()
	var exit *exec.ExitError
	if err := w.cmd.Wait(); errors.As(err, &exit) && exit.ExitCode() == exitMemory {
		return failed(TooLarge, fmt.Sprintf("the build needs more than %d MiB of memory and was stopped", hardMemory>>20))
	}
	return failed(RenderFailed, fmt.Sprintf("the build crashed its worker: %v", cause))
}
