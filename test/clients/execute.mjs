import { execFile } from 'node:child_process';

const timeout = 120_000;

// execute runs a program to its end and returns {code, out, err}; code is null when it was killed.
export function execute(program, args) {
  return new Promise((resolve) => {
    execFile(program, args, { timeout, maxBuffer: 64 << 20 }, (error, out, err) => {
      resolve({ code: error ? (error.code ?? null) : 0, out, err });
    });
  });
}
