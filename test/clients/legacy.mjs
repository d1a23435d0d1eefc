// The official TypeScript client of the handshake era.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { check } from './check.mjs';
import { exercise } from './exercise.mjs';

// legacyClient connects over HTTP when a url is given, else over stdio. A person, if there is one, is called with
// the parameters of a form and an AbortSignal, and returns the answer; without one the client declares no elicitation.
// It returns {client, call, leave}; call(name, args, options) calls a tool.
export async function legacyClient({ binary, args, env, url }, person) {
  const client = new Client({ name: 'hecate-mcp-test', version: '1.0.0' }, { capabilities: person ? { elicitation: {} } : {} });
  if (person) client.setRequestHandler(ElicitRequestSchema, (request, { signal }) => person(request.params, signal));
  const transport = url ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport({ command: binary, args, env, stderr: 'ignore' });
  await client.connect(transport);
  const leave = async () => {
    if (url) await transport.terminateSession();
    await client.close();
  };
  return { client, leave, call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options) };
}

// legacy tests a server.
export async function legacy(server) {
  const name = `legacy ${server.url ? 'http' : 'stdio'}`;
  const connected = await check(`${name}: connects`, () => legacyClient(server));
  if (!connected) return;
  await exercise(name, connected.client);
  await check(`${name}: leaves`, connected.leave);
}
