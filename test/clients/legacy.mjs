// The official TypeScript client of the handshake era.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { check } from './check.mjs';
import { exercise } from './exercise.mjs';

// legacy tests a server over HTTP when a url is given, else over stdio.
export async function legacy({ binary, args, url }) {
  const name = `legacy ${url ? 'http' : 'stdio'}`;
  const client = new Client({ name: 'hecate-mcp-test', version: '1.0.0' });
  const transport = url ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport({ command: binary, args, stderr: 'ignore' });
  if (await check(`${name}: connects`, async () => (await client.connect(transport), true))) await exercise(name, client);
  await check(`${name}: leaves`, async () => {
    if (url) await transport.terminateSession();
    await client.close();
  });
}
