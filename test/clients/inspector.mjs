// The inspector's strict listing: exit code 6 means that a schema is not portable between model vendors.
import { check, require } from './check.mjs';
import { execute } from './execute.mjs';

const launcher = 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js';

// inspect has the inspector start the server and call one method; it returns {code, out, err}.
export function inspect(era, server, method) {
  return execute(process.execPath, [launcher, '--cli', '-q', ...server, ...method, '--format', 'json', '--protocol-era', era]);
}

// inspector checks what a server lists; what says which one it is.
export async function inspector(binary, args, what = '') {
  for (const era of ['legacy', 'modern']) {
    await check(`inspector ${era}: strict listing${what}`, async () => {
      const { code, out, err } = await inspect(era, [binary, ...args], ['--method', 'tools/list', '--strict']);
      require(code === 0, `exit code ${code}: ${(err || out).slice(0, 2000)}`);
      const listed = JSON.parse(out);
      const tools = listed.tools ?? listed.result?.tools;
      require(tools?.length > 0, `no tools: ${out.slice(0, 500)}`);
    });
  }
}
