package cluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// startLimit is how long a server may take to be ready: it takes seconds, but
// a shared machine may be busy compiling.
const startLimit = 3 * time.Minute

// keeper runs a program and kills it when its own standard input ends. A test
// binary that times out or is killed runs no cleanup, but its pipe closes.
const keeper = `exec 3<&0
"$@" </dev/null & pid=$!
{ read -r _ <&3; kill -9 $pid; } 2>/dev/null &
wait $pid`

// A process is a running program whose output goes to a file.
type process struct {
	name, log string
	stdin     io.Closer
	ended     chan struct{} // closed when the program has ended
}

// run starts a program and returns at once. Its output is appended to
// dir/name.log.
func run(dir, path string, args ...string) (*process, error) {
	return runWith(nil, dir, path, args...)
}

// runWith is run with more variables in the environment.
func runWith(env []string, dir, path string, args ...string) (*process, error) {
	name := filepath.Base(path)
	p := &process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write the log of %s: %w", name, err)
	}
	defer log.Close() // the child has its own
	cmd := exec.Command("sh", append([]string{"-c", keeper, name, path}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), env...)
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	go func() {
		// However it ended, whoever waits for it shows the log.
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// kill ends the program the hard way and waits until it has.
func (p *process) kill() error {
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("cannot stop %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(10 * time.Second):
		return fmt.Errorf("%s was told to stop and has not within 10 s", p.name)
	}
}

// waitReady asks until ready returns nil, the program ends or startLimit is over.
func (p *process) waitReady(ready func() error) error {
	deadline := time.Now().Add(startLimit)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended before it was ready; its last words:\n%s", p.name, p.tail())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not ready after %s: %w; its last words:\n%s", p.name, startLimit, err, p.tail())
		}
	}
}

// tail is the end of the log.
func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// freePorts returns n different loopback ports that nobody listened on just now.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("no free loopback port: %w", err)
		}
		defer l.Close() // only after all are found, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
