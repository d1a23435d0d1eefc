// Runs every check against one binary: run.mjs BINARY ARGS…
import { check, finish } from './check.mjs';
import { conformance } from './conformance.mjs';
import { inspector } from './inspector.mjs';
import { legacy } from './legacy.mjs';
import { modern } from './modern.mjs';
import { serveHTTP } from './serve.mjs';
import { writes } from './writes.mjs';

const [binary, ...args] = process.argv.slice(2);

await inspector(binary, args);
const server = await check('http: starts and names its address', () => serveHTTP(binary, args));
for (const connect of [legacy, modern]) {
  await connect({ binary, args });
  if (server) await connect({ url: server.url });
}
if (server) {
  await conformance('server', server.url);
  await check('http: SIGTERM is a clean exit', () => server.stop());
}
// Nothing but the demo is written to.
if (args.includes('--demo')) await writes(binary, args);
const fixture = await check('fixture: starts and names its address', () => serveHTTP(process.env.FIXTURE, []));
if (fixture) {
  await conformance('fixture', fixture.url);
  await check('fixture: SIGTERM is a clean exit', () => fixture.stop());
}
finish();
