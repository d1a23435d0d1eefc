// The inspector's strict listing: exit code 6 means that a schema is not portable between model vendors.
import { check, require } from './check.mjs';
import { execute } from './execute.mjs';

const launcher = 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js';

export async function inspector(binary, args) {
  for (const era of ['legacy', 'modern']) {
    await check(`inspector ${era}: strict listing`, async () => {
      const { code, out, err } = await execute(process.execPath, [launcher, '--cli', '-q', binary, ...args,
        '--method', 'tools/list', '--strict', '--format', 'json', '--protocol-era', era]);
      require(code === 0, `exit code ${code}: ${(err || out).slice(0, 2000)}`);
      const listed = JSON.parse(out);
      const tools = listed.tools ?? listed.result?.tools;
      require(tools?.length > 0, `no tools: ${out.slice(0, 500)}`);
    });
  }
}
