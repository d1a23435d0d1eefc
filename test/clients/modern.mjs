// The official TypeScript client of the stateless era, pinned to it: falling back would be a failure.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { check, require } from './check.mjs';
import { exercise } from './exercise.mjs';

const version = '2026-07-28';

// modern tests a server over HTTP when a url is given, else over stdio.
export async function modern({ binary, args, url }) {
  const name = `modern ${url ? 'http' : 'stdio'}`;
  const client = new Client({ name: 'hecate-mcp-test', version: '1.0.0' }, { versionNegotiation: { mode: { pin: version } } });
  const transport = url ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport({ command: binary, args, stderr: 'ignore' });
  const connected = await check(`${name}: connects`, async () => {
    await client.connect(transport);
    require(client.getNegotiatedProtocolVersion() === version, `negotiated ${client.getNegotiatedProtocolVersion()}`);
    return true;
  });
  if (connected) await exercise(name, client);
  await check(`${name}: leaves`, () => client.close());
}
