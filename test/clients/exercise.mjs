// What a client of either era does with the server: the two official clients have the same methods. They
// validate structuredContent against the tool's outputSchema by themselves, and throw when it does not fit.
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { check, require } from './check.mjs';

// The arguments that fit the demo estate, per tool, prompt, resource and completion.
const table = JSON.parse(readFileSync(new URL('arguments.json', import.meta.url), 'utf8'));

export async function exercise(name, client) {
  await check(`${name}: has instructions`, () => require(client.getInstructions()?.length > 0, 'none'));
  const tools = await check(`${name}: lists tools`, () => all((p) => client.listTools(p), 'tools'));
  if (tools) await exerciseTools(name, client, tools);
  await exercisePrompts(name, client);
  await exerciseResources(name, client);
  for (const { ref, argument, expect } of table.completions) {
    await check(`${name}: completes ${ref.name ?? ref.uri} ${argument.name}=${argument.value}`, async () => {
      const { completion } = await client.complete({ ref, argument });
      require(completion.values.includes(expect), `${expect} is not among ${JSON.stringify(completion.values)}`);
    });
  }
}

async function exerciseTools(name, client, tools) {
  await check(`${name}: the table has exactly the tools of the list`, () => same(tools.map((t) => t.name), Object.keys(table.tools)));
  for (const tool of tools) {
    for (const args of table.tools[tool.name] ?? []) {
      await check(`${name}: calls ${tool.name} ${JSON.stringify(args)}`, async () => {
        const result = await client.callTool({ name: tool.name, arguments: args });
        const text = result.content?.[0]?.text;
        require(!result.isError, `an error: ${text}`);
        require(result.structuredContent, 'no structuredContent');
        require(isDeepStrictEqual(JSON.parse(text), result.structuredContent), 'content is not the JSON of structuredContent');
      });
    }
    await check(`${name}: ${tool.name} refuses an unknown argument`, async () => {
      const result = await client.callTool({ name: tool.name, arguments: { ...(table.tools[tool.name]?.[0] ?? {}), no_such_argument: true } });
      const text = result.content?.[0]?.text;
      require(result.isError, `no error: ${text}`);
      const error = JSON.parse(text);
      require(error.code === 'InvalidArgument' && error.validValues?.length > 0, `not a coded error that names what is valid: ${text}`);
      require(result.structuredContent === undefined, 'structuredContent on an error: some clients throw');
    });
  }
}

async function exercisePrompts(name, client) {
  const prompts = await check(`${name}: lists prompts`, () => all((p) => client.listPrompts(p), 'prompts'));
  if (!prompts) return;
  await check(`${name}: the table has exactly the prompts of the list`, () => same(prompts.map((p) => p.name), Object.keys(table.prompts)));
  for (const prompt of prompts) {
    await check(`${name}: gets prompt ${prompt.name}`, async () => {
      require(prompt.description, 'no description');
      const { messages } = await client.getPrompt({ name: prompt.name, arguments: table.prompts[prompt.name] });
      require(messages.length > 0 && messages.every((m) => m.content), 'no messages');
    });
  }
}

async function exerciseResources(name, client) {
  const resources = await check(`${name}: lists resources`, () => all((p) => client.listResources(p), 'resources'));
  const templates = await check(`${name}: lists resource templates`, () => all((p) => client.listResourceTemplates(p), 'resourceTemplates'));
  if (templates) {
    await check(`${name}: the table has exactly the templates of the list`, () => same(templates.map((t) => t.uriTemplate), Object.keys(table.templates)));
  }
  for (const uri of [...(resources ?? []).map((r) => r.uri), ...Object.values(table.templates)]) {
    await check(`${name}: reads ${uri}`, async () => {
      const { contents } = await client.readResource({ uri });
      require(contents.length > 0 && contents.every((c) => c.text?.length > 0), 'nothing');
    });
  }
}

// all follows a list's cursor to its end.
async function all(list, key) {
  const found = [];
  let cursor;
  do {
    const page = await list(cursor ? { cursor } : undefined);
    found.push(...page[key]);
    cursor = page.nextCursor;
  } while (cursor);
  require(found.length > 0, 'the list is empty');
  return found;
}

function same(listed, known) {
  const missing = listed.filter((n) => !known.includes(n));
  const gone = known.filter((n) => !listed.includes(n));
  require(missing.length + gone.length === 0, `not in arguments.json: ${missing.join(', ') || 'none'}; only there: ${gone.join(', ') || 'none'}`);
}
