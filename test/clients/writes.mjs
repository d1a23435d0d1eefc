// The confirmation of writes as the official clients of both eras see it: a person who says yes, one who says no,
// one who never answers, and a client that can't ask. Every flow starts a server of its own on the demo estate,
// whose simulated controller walks the steps: nothing here may run against anything else.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { check, require, skip } from './check.mjs';
import { inspect, inspector } from './inspector.mjs';
import { legacyClient } from './legacy.mjs';
import { modernClient } from './modern.mjs';
import { serveHTTP } from './serve.mjs';
import { noTerminal, onTerminal } from './terminal.mjs';

// Gates of the demo whose next crossing succeeds and fails; which Bundle they take is asked of the rules.
const succeeding = 'staging';
const failed = 'dev';
const writing = ['abort_passage', 'poll_beacon', 'promote_bundle', 'reconcile_flux'];
const hints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];
const command = 'hecate-mcp confirm';
// More than a stdio server has workers.
const many = 33;
const ended = ['Succeeded', 'Failed', 'Aborted'];
const patience = { timeout: 120_000 };

// writes tests the server with --allow-writes: both eras, over stdio and HTTP, all at once, since most of the time
// is spent waiting for the demo's controller.
export async function writes(binary, args) {
  await inspector(binary, [...args, '--allow-writes'], ' with --allow-writes');
  await inspectorDenied(binary, args);
  const connections = [];
  for (const [era, connect] of [['legacy', legacyClient], ['modern', modernClient]]) {
    for (const transport of ['stdio', 'http']) connections.push({ name: `${era} ${transport} writes`, era, transport, connect, binary, args });
  }
  await Promise.all(connections.map(async (t) => {
    await lists(t);
    await accepted(t);
    await followed(t);
    if (t.transport === 'stdio') await failing(t);
    await refused(t);
    await unanswered(t);
    if (t.era === 'legacy') await crowded(t);
    await atTerminal(t);
  }));
}

// inspectorDenied holds that the inspector, which declares no elicitation, is sent to a terminal.
async function inspectorDenied(binary, args) {
  for (const era of ['legacy', 'modern']) {
    await check(`inspector ${era}: promote_bundle names the terminal`, () => inFolder(async (folder) => {
      const server = ['-e', `XDG_RUNTIME_DIR=${folder}`, binary, ...args, '--allow-writes'];
      const { code, out } = await inspect(era, server, ['--method', 'tools/call', '--tool-name', 'promote_bundle', '--tool-arg', `gate=${failed}`]);
      require(code === 5, `exit code ${code}: ${out}`);
      required(JSON.parse(out.split('\n')[0]).result, 'NoForm');
    }));
  }
}

// inFolder gives f a folder that is private to the user and removed afterwards.
async function inFolder(f) {
  const folder = mkdtempSync(join(tmpdir(), 'hecate-'));
  try {
    return await f(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// estate starts a server in a private folder, connects a client of the person's to it, and hands both to f. With
// stdio the server is the client's process.
function estate(t, { person, flags = [], readOnly = false }, f) {
  return inFolder(async (folder) => {
    const log = join(folder, 'writes.jsonl');
    const args = readOnly ? t.args : [...t.args, '--allow-writes', '--write-log', log, ...flags];
    const env = { XDG_RUNTIME_DIR: folder };
    const server = t.transport === 'http' ? await serveHTTP(t.binary, args, env) : undefined;
    let connected;
    try {
      connected = await t.connect(server ? { url: server.url } : { binary: t.binary, args: ['serve', ...args], env }, person);
      await f({ ...connected, folder, events: () => readFileSync(log, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) });
    } finally {
      // A session that can't be left any more was reported by what broke it.
      await connected?.leave().catch(() => {});
      await server?.stop();
    }
  });
}

// read calls a tool that has to answer.
async function read(e, tool, args) {
  const result = await e.call(tool, args);
  require(!result.isError, `${tool}: ${result.content?.[0]?.text}`);
  return result.structuredContent;
}

// allowed asks the rules for a promotion through the Gate that they allow.
async function allowed(e, name = succeeding) {
  const { gates } = await read(e, 'list_gates', {});
  const { gate, namespace } = gates.find((g) => g.gate === name) ?? {};
  require(gate, `no Gate ${name} in ${JSON.stringify(gates)}`);
  const { bundles } = await read(e, 'list_bundles', { namespace });
  for (const { bundle } of bundles) {
    const { wouldCross } = await read(e, 'preview_promotion', { gate, bundle, namespace });
    if (wouldCross) return { gate, bundle, namespace };
  }
  throw new Error(`no Bundle would cross ${gate}`);
}

// passages are the names of the Gate's.
async function passages(e, { gate, namespace }) {
  const { passages, total, truncated } = await read(e, 'list_passages', { gate, namespace, limit: 50 });
  require(!truncated && passages.length === total, `${passages.length} of ${total} Passages`);
  return passages.map((p) => p.passage);
}

// opens requires that exactly the Passage of the result is new.
async function opens(e, want, before, result) {
  require(!result.isError, `an error: ${result.content?.[0]?.text}`);
  const out = result.structuredContent;
  const since = (await passages(e, want)).filter((p) => !before.includes(p));
  require(since.length === 1 && since[0] === out.passage.name, `new are ${since.join(', ') || 'none'}, the answer names ${out.passage.name}`);
  const seen = await read(e, 'get_passage', { passage: out.passage.name, namespace: want.namespace });
  require(seen.gate === want.gate && seen.bundle === want.bundle, `the Passage takes ${seen.bundle} through ${seen.gate}`);
  return out;
}

// none requires that no Passage is new.
async function none(e, want, before) {
  const since = (await passages(e, want)).filter((p) => !before.includes(p));
  require(since.length === 0, `opened all the same: ${since.join(', ')}`);
}

// failure is the coded error of a result.
function failure(result, code, ...reasons) {
  const text = result.content?.[0]?.text;
  require(result.isError, `no error: ${text}`);
  const error = JSON.parse(text);
  require(error.code === code && (reasons.length === 0 || reasons.includes(error.reason)), `not ${code} ${reasons.join(' or ')}: ${text}`);
  return error;
}

// required is the error that sends a person to a terminal.
function required(result, ...reasons) {
  const error = failure(result, 'ConfirmationRequired', ...reasons);
  require(error.humanSteps?.some((s) => s.command === command), `no human step names ${command}: ${JSON.stringify(error)}`);
  require(!error.nextSteps?.length, `steps for the model: ${JSON.stringify(error.nextSteps)}`);
  return error;
}

// says makes a person who gives one answer, and remembers what was shown.
function says(answer) {
  const shown = [];
  return Object.assign((params) => (shown.push(params), answer), { shown });
}

// silent makes a person who never answers; asked resolves with the number of questions, once it is n.
function silent() {
  let count = 0;
  let changed = () => {};
  const person = (_, signal) => {
    count++;
    changed();
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
  };
  const asked = async (n) => {
    while (count < n) await new Promise((resolve) => (changed = resolve));
    return count;
  };
  return Object.assign(person, { asked, count: () => count });
}

const yes = { action: 'accept', content: { confirm: true } };

async function lists(t) {
  const without = [];
  await check(`${t.name}: without --allow-writes no tool that writes is listed, and a call is refused`, () => estate(t, { readOnly: true, person: says(yes) }, async (e) => {
    without.push(...(await e.client.listTools()).tools.map((x) => x.name));
    const found = without.filter((name) => writing.includes(name));
    require(found.length === 0, `listed: ${found.join(', ')}`);
    const want = await allowed(e);
    const before = await passages(e, want);
    failure(await e.call('promote_bundle', want), 'Refused', 'WritesDisabled');
    await none(e, want, before);
  }));
  await check(`${t.name}: lists four tools more, with all hints, and none that approves`, () => estate(t, {}, async (e) => {
    const { tools } = await e.client.listTools();
    const more = tools.filter((x) => !without.includes(x.name));
    require(more.map((x) => x.name).sort().join() === writing.join(), `more are ${more.map((x) => x.name).join(', ')}`);
    for (const tool of more) {
      for (const hint of hints) require(typeof tool.annotations?.[hint] === 'boolean', `${tool.name} has no ${hint}`);
      require(tool.annotations.readOnlyHint === false, `${tool.name} calls itself read-only`);
      require(!('confirm' in tool.inputSchema.properties), `${tool.name} has an argument that confirms`);
    }
    const approving = tools.filter((x) => /approv/i.test(`${x.name} ${x.title}`)).map((x) => x.name);
    require(approving.length === 0, `these approve: ${approving.join(', ')}`);
  }));
}

async function accepted(t) {
  const person = says(yes);
  await check(`${t.name}: a person accepts, and the Passage opens`, () => estate(t, { person }, async (e) => {
    const want = await allowed(e);
    const before = await passages(e, want);
    const out = await opens(e, want, before, await e.call('promote_bundle', want, patience));
    require(out.confirmedVia === 'elicitation', `confirmed via ${out.confirmedVia}`);
    require(person.shown.length === 1, `asked ${person.shown.length} times`);
    const { message, requestedSchema } = person.shown[0];
    const title = message.split('\n')[0];
    require(title.startsWith('promote ') && title.includes(want.bundle) && title.includes(want.gate), `the form's title: ${title}`);
    for (const line of [`gate: ${want.namespace}/${want.gate}`, `bundle: ${want.bundle}`]) {
      require(message.split('\n').includes(line), `the form has no line "${line}":\n${message}`);
    }
    const { confirm, ...others } = requestedSchema.properties;
    require(confirm?.type === 'boolean' && confirm.default !== true && Object.keys(others).length === 0, `the form asks for ${JSON.stringify(requestedSchema)}`);
    const log = e.events();
    require(log.map((x) => x.event).join() === 'asked,confirmed,done', `on record: ${JSON.stringify(log)}`);
    require(log.every((x) => x.plan === out.plan && x.title === title), `on record: ${JSON.stringify(log)}`);
    require(log[2].confirmedVia === 'elicitation' && log[2].client.startsWith('hecate-mcp-test') && log[2].actor === out.actor, `on record: ${JSON.stringify(log[2])}`);
  }));
}

async function followed(t) {
  await check(`${t.name}: with wait each step is reported, and the outcome`, () => estate(t, { person: says(yes) }, async (e) => {
    const want = await allowed(e);
    const before = await passages(e, want);
    const progress = [];
    const result = await e.call('promote_bundle', { ...want, wait: '1m' }, { ...patience, onprogress: (p) => progress.push(p.message) });
    const out = await opens(e, want, before, result);
    require(out.phase === 'Succeeded', `${out.phase}: ${out.summary}`);
    require(out.steps.length > 0 && out.steps.every((s) => s.phase === 'Succeeded'), `steps: ${JSON.stringify(out.steps)}`);
    // The modern client reports its own rounds the same way.
    const steps = progress.filter((message) => out.steps.some((s) => message?.includes(s.uses)));
    require(new Set(steps).size > 1, `progress: ${JSON.stringify(progress)}`);
  }));
}

// failing holds that a crossing that fails is an answer, which names the step.
async function failing(t) {
  const person = says(yes);
  await check(`${t.name}: a crossing that failed before is warned of, and the step that fails is named`, () => estate(t, { person }, async (e) => {
    const want = await allowed(e, failed);
    const before = await passages(e, want);
    const out = await opens(e, want, before, await e.call('promote_bundle', { ...want, wait: '1m' }, patience));
    require(person.shown[0].message.includes('WARNING FailedHereBefore'), `the form does not warn:\n${person.shown[0].message}`);
    require(out.phase === 'Failed', `${out.phase}: ${out.summary}`);
    const step = out.steps.find((s) => s.sank);
    require(step?.phase === 'Failed' && step.message && out.summary.includes(step.uses), `the step is not named: ${JSON.stringify(out)}`);
  }));
}

async function refused(t) {
  for (const [what, answer, reason] of [
    ['declines', { action: 'decline' }, 'Declined'],
    ['cancels', { action: 'cancel' }, 'Cancelled'],
    ['accepts without confirm', { action: 'accept', content: {} }, 'NotConfirmed'],
    ['accepts without content', { action: 'accept' }, 'NotConfirmed'],
    ['accepts with confirm: false', { action: 'accept', content: { confirm: false } }, 'NotConfirmed'],
    ['declines with confirm: true', { ...yes, action: 'decline' }, 'Declined'],
  ]) {
    const person = says(answer);
    await check(`${t.name}: a person ${what}, and nothing is done`, () => estate(t, { person }, async (e) => {
      const want = await allowed(e);
      const before = await passages(e, want);
      failure(await e.call('promote_bundle', want, patience), 'ConfirmationDeclined', reason);
      require(person.shown.length === 1, `asked ${person.shown.length} times`);
      await none(e, want, before);
      require(e.events().map((x) => x.event).join() === 'asked,refused', `on record: ${JSON.stringify(e.events())}`);
    }));
  }
}

// unanswered holds what becomes of a question that a client that shows forms never answers.
async function unanswered(t) {
  const person = silent();
  const flags = ['--confirm-timeout', '2s'];
  await check(`${t.name}: a person never answers: reads go on, the terminal is named`, () => estate(t, { person, flags }, async (e) => {
    const want = await allowed(e);
    const before = await passages(e, want);
    const giveUp = new AbortController();
    const asking = e.call('promote_bundle', want, { ...patience, signal: giveUp.signal });
    await Promise.race([person.asked(1), asking]);
    await read(e, 'list_gates', {});
    if (t.era === 'legacy') {
      required(await asking, 'NoAnswer');
    } else {
      // No server waits in this era: it is the client that gives up.
      giveUp.abort(new Error('the person is gone'));
      const answer = await asking.then((result) => `answered: ${result.content?.[0]?.text}`, () => undefined);
      require(answer === undefined, answer);
    }
    required(await e.call('promote_bundle', want, patience), 'Waiting');
    require(person.count() === 1, `asked ${person.count()} times, though nobody answers`);
    await none(e, want, before);
    if (noTerminal) return;
    const { code, screen } = await confirm(t, e, [[`type ${want.gate}: `, want.gate]]);
    require(code === 0, `confirm exited with ${code}:\n${screen}`);
    const out = await opens(e, want, before, await e.call('promote_bundle', want, patience));
    require(out.confirmedVia === 'terminal' && person.count() === 1, `confirmed via ${out.confirmedVia}, asked ${person.count()} times`);
  }));
}

// crowded holds that questions that nobody answers don't use up what reads need.
async function crowded(t) {
  const person = silent();
  await check(`${t.name}: ${many} questions that nobody answers don't block a read`, () => estate(t, { person }, async (e) => {
    const want = await allowed(e);
    const before = await passages(e, want);
    let over = 0;
    const busy = [];
    const giveUp = new AbortController();
    const calls = Array.from({ length: many }, () => e.call('promote_bundle', want, { timeout: 60_000, signal: giveUp.signal })
      .then((result) => busy.push(result), () => {}).finally(() => over++));
    // Each call has asked, or was told that too many ask.
    while (person.count() + over < many) await pause(20);
    await read(e, 'list_gates', {});
    await none(e, want, before);
    for (const result of busy) required(result, 'Busy', 'Waiting');
    require(over === busy.length && over < many, `${over} of ${many} calls have ended, ${busy.length} with an answer`);
    giveUp.abort(new Error('the test is over'));
    await Promise.all(calls);
  }));
}

// atTerminal holds the way of a client that can't ask.
async function atTerminal(t) {
  await check(`${t.name}: without elicitation the terminal is named, and nothing is done`, () => estate(t, {}, async (e) => {
    const want = await allowed(e);
    const before = await passages(e, want);
    const { confirmation } = required(await e.call('promote_bundle', want), 'NoForm');
    require(confirmation.title.includes(want.bundle) && confirmation.title.includes(want.gate), `title: ${confirmation.title}`);
    required(await e.call('promote_bundle', want), 'Waiting');
    await none(e, want, before);
  }));
  const onTTY = (name, f) => {
    const whole = `${t.name}: on a terminal ${name}`;
    return noTerminal ? skip(whole, noTerminal) : check(whole, () => estate(t, {}, f));
  };
  await onTTY('the plan is shown, the Gate typed, and the same call goes through once', async (e) => {
    const want = await allowed(e);
    const before = await passages(e, want);
    const { confirmation } = required(await e.call('promote_bundle', want), 'NoForm');
    const no = await confirm(t, e, [[`type ${want.gate}: `, 'yes']]);
    require(no.code === 5 && no.screen.includes('still waits'), `a wrong name: exit code ${no.code}:\n${no.screen}`);
    required(await e.call('promote_bundle', want), 'Waiting');
    const { code, screen } = await confirm(t, e, [[`type ${want.gate}: `, want.gate]]);
    require(code === 0 && screen.includes('Confirmed.'), `exit code ${code}:\n${screen}`);
    for (const text of [confirmation.title, `gate: ${want.namespace}/${want.gate}`, `bundle: ${want.bundle}`, 'hecate-mcp-test']) {
      require(screen.includes(text), `the terminal does not show "${text}":\n${screen}`);
    }
    await none(e, want, before);
    // Other arguments are another call, also when they come to the same plan.
    required(await e.call('promote_bundle', { ...want, wait: '1s' }), 'NoForm');
    await none(e, want, before);
    const results = await Promise.all([1, 2, 3].map(() => e.call('promote_bundle', want, patience)));
    const done = results.filter((r) => !r.isError);
    require(done.length === 1, `${done.length} of 3 same calls went through: ${JSON.stringify(results.map((r) => r.content?.[0]?.text))}`);
    const out = await opens(e, want, before, done[0]);
    require(out.confirmedVia === 'terminal', `confirmed via ${out.confirmedVia}`);
    const over = async () => ended.includes((await read(e, 'get_passage', { passage: out.passage.name, namespace: want.namespace })).phase);
    while (!(await over())) await pause(500);
    require((await e.call('promote_bundle', want, patience)).isError, 'the same call went through again');
    await opens(e, want, before, done[0]);
    require(e.events().filter((x) => x.event === 'done').length === 1, `on record: ${JSON.stringify(e.events())}`);
  });
  // The rules would refuse a second promotion by themselves; a Beacon may be polled at any time.
  await onTTY('one yes is good for one call', async (e) => {
    const { beacons } = await read(e, 'list_beacons', {});
    const poll = { beacon: beacons[0].beacon, namespace: beacons[0].namespace };
    required(await e.call('poll_beacon', poll), 'NoForm');
    const { code, screen } = await confirm(t, e, [[`type ${poll.beacon}: `, poll.beacon]]);
    require(code === 0, `exit code ${code}:\n${screen}`);
    const result = await e.call('poll_beacon', poll);
    require(!result.isError && result.structuredContent.confirmedVia === 'terminal', `not done: ${result.content?.[0]?.text}`);
    required(await e.call('poll_beacon', poll), 'NoForm');
  });
  await onTTY('a person declines, and the same call says so', async (e) => {
    const want = await allowed(e);
    const before = await passages(e, want);
    required(await e.call('promote_bundle', want), 'NoForm');
    const { code, screen } = await confirm(t, e, [['[y/N] ', 'y']], '--decline');
    require(code === 5 && screen.includes('Declined.'), `exit code ${code}:\n${screen}`);
    failure(await e.call('promote_bundle', want), 'ConfirmationDeclined', 'Declined');
    required(await e.call('promote_bundle', want), 'NoForm');
    await none(e, want, before);
  });
}

// confirm runs the command that the answer names, on a terminal of the user's. What other servers of this user have
// waiting is out of its sight.
function confirm(t, e, dialog, ...flags) {
  const env = { PATH: process.env.PATH, TERM: 'dumb', HOME: e.folder, TMPDIR: e.folder, XDG_CACHE_HOME: e.folder, XDG_RUNTIME_DIR: e.folder };
  return onTerminal(t.binary, ['confirm', ...flags], env, dialog);
}
