// A person at a terminal, played by a pseudo-terminal. That it works is a limit, too: whatever has a shell of the
// user can do the same.
import { spawn } from 'node:child_process';

const timeout = 60_000;

// why there is no terminal here; undefined when there is one.
export const noTerminal = process.env.PTY ? undefined : 'the program that opens pseudo-terminals is for Linux';

// onTerminal runs a program on a terminal of its own and types each line of the dialog, [[prompt, line], …], once
// its prompt is on the screen. It returns {code, screen}.
export function onTerminal(program, args, env, dialog) {
  const child = spawn(process.env.PTY, [program, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  return new Promise((resolve, reject) => {
    let screen = '';
    let seen = 0; // what was on the screen when the last line was typed
    let next = 0;
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout);
    child.once('error', reject);
    // A line for a program that has ended is not typed; that shows in what it printed.
    child.stdin.on('error', () => {});
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => {
        screen += text.replaceAll('\r\n', '\n');
        if (next === dialog.length || !screen.slice(seen).includes(dialog[next][0])) return;
        seen = screen.length;
        child.stdin.write(`${dialog[next++][1]}\n`);
      });
    }
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code: code ?? signal, screen });
    });
  });
}
