// The official TypeScript client of the stateless era, pinned to it: falling back would be a failure.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { check, require } from './check.mjs';
import { exercise } from './exercise.mjs';

const version = '2026-07-28';

// modernClient connects over HTTP when a url is given, else over stdio. The person and what it returns are as in legacyClient.
export async function modernClient({ binary, args, env, url }, person) {
  const client = new Client({ name: 'hecate-mcp-test', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: version } }, capabilities: person ? { elicitation: {} } : {} });
  if (person) client.setRequestHandler('elicitation/create', (request, context) => person(request.params, context.mcpReq.signal));
  const transport = url ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport({ command: binary, args, env, stderr: 'ignore' });
  await client.connect(transport);
  require(client.getNegotiatedProtocolVersion() === version, `negotiated ${client.getNegotiatedProtocolVersion()}`);
  return { client, leave: () => client.close(), call: (name, args, options) => client.callTool({ name, arguments: args }, options) };
}

// modern tests a server.
export async function modern(server) {
  const name = `modern ${server.url ? 'http' : 'stdio'}`;
  const connected = await check(`${name}: connects`, () => modernClient(server));
  if (!connected) return;
  await exercise(name, connected.client);
  await check(`${name}: leaves`, connected.leave);
}
