import { spawn } from 'node:child_process';

const startTimeout = 20_000;
const stopTimeout = 10_000;

// serveHTTP starts "BINARY serve ARGS… --transport http" on a free port and waits for the log line that names
// the address. The variables of env are added to the environment. It returns {url, stop}; stop rejects unless SIGTERM
// ends the process with code 0.
export function serveHTTP(binary, args, env = {}) {
  const child = spawn(binary, ['serve', ...args, '--transport', 'http', '--listen', '127.0.0.1:0'],
    { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
  exited.then(() => process.off('exit', kill));
  return new Promise((resolve, reject) => {
    let log = '';
    const timer = setTimeout(() => reject(new Error(`no address in ${startTimeout} ms: ${log}`)), startTimeout);
    child.once('error', reject);
    exited.then((code) => reject(new Error(`exited with ${code}: ${log}`)));
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text) => {
      log = (log + text).slice(-100_000);
      const found = /listening.*?url"?[=:]"?(http:\/\/[^"\s]+)/.exec(log);
      if (!found) return;
      clearTimeout(timer);
      resolve({ url: found[1], stop: () => stop(child, exited) });
    });
  });
}

async function stop(child, exited) {
  child.kill('SIGTERM');
  const code = await Promise.race([exited, new Promise((resolve) => setTimeout(resolve, stopTimeout, `nothing in ${stopTimeout} ms`))]);
  if (code !== 0) throw new Error(`SIGTERM ended in ${code}`);
}
