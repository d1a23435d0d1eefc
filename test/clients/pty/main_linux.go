// Command pty runs a program on a pseudo-terminal: pty PROGRAM ARGS… types what
// comes on stdin, prints what the terminal shows, and exits with the program's
// code. It is for tests of what asks a person on a terminal.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

// exitFailed is the code when the program could not be run to its end.
const exitFailed = 125

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: pty PROGRAM ARGS…")
		os.Exit(exitFailed)
	}
	err := run(exec.Command(os.Args[1], os.Args[2:]...))
	ended := new(exec.ExitError)
	switch {
	case err == nil:
	case errors.As(err, &ended) && ended.Exited():
		os.Exit(ended.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "pty:", err)
		os.Exit(exitFailed)
	}
}

func run(cmd *exec.Cmd) error {
	keyboard, terminal, err := open()
	if err != nil {
		return fmt.Errorf("no pseudo-terminals here: %w", err)
	}
	defer keyboard.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	// A session of its own, whose terminal this is: /dev/tty leads there too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	terminal.Close()
	if err != nil {
		return err
	}
	// The end of stdin is not typed: a person who types no more has not hung up.
	go io.Copy(keyboard, os.Stdin)
	// Reading fails with EIO once the program has let go of the terminal.
	if _, err := io.Copy(os.Stdout, keyboard); err != nil && !errors.Is(err, syscall.EIO) {
		cmd.Process.Kill()
		return errors.Join(err, cmd.Wait())
	}
	return cmd.Wait()
}

// open returns both ends of a new terminal.
func open() (keyboard, terminal *os.File, err error) {
	keyboard, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var locked, number uint32
	if err = errors.Join(control(keyboard, syscall.TIOCSPTLCK, &locked), control(keyboard, syscall.TIOCGPTN, &number)); err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		keyboard.Close()
		return nil, nil, err
	}
	return keyboard, terminal, nil
}

func control(f *os.File, request uintptr, value *uint32) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}
