// The conformance suites, in both eras. They are pinned, so conformance.json can say of every run which
// scenarios the real server has to pass; the others need tools that only the fixture has, and the fixture
// has to pass them all. What the library cannot do stands under "known" with its reason, check by check; what
// hecate-mcp does not offer at all, under "notOffered".
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, require } from './check.mjs';
import { execute } from './execute.mjs';

const pinned = JSON.parse(readFileSync(new URL('conformance.json', import.meta.url), 'utf8'));

// conformance runs the suites against url; what is "server" or "fixture".
export async function conformance(what, url) {
  for (const run of pinned.runs) {
    const name = `conformance ${what} ${run.name}`;
    const results = await check(`${name}: runs`, () => runSuite(run, url));
    if (!results) continue;
    const scenarios = what === 'server' ? run.server : [...results.keys()].sort();
    for (const scenario of scenarios) {
      const absent = pinned.notOffered[scenario];
      if (absent) {
        console.log(`skip  ${name}: ${scenario}: ${absent}`);
        continue;
      }
      const known = pinned.known[what]?.[scenario];
      await check(`${name}: ${scenario}${known ? ` (but for: ${known.reason})` : ''}`, () => {
        const failures = results.get(scenario);
        require(failures, 'the suite has no such scenario');
        const others = failures.filter((f) => !known?.checks.includes(f.id));
        require(others.length === 0, others.map((f) => `${f.id}: ${f.errorMessage ?? f.description}`).join('; '));
      });
    }
  }
}

// runSuite returns the failed checks of each scenario.
async function runSuite(run, url) {
  const dir = mkdtempSync(join(tmpdir(), 'conformance-'));
  try {
    const { err } = await execute(process.execPath, [`node_modules/${run.package}/dist/index.js`, 'server', '--url', url, ...run.args, '-o', dir]);
    const results = new Map();
    for (const folder of readdirSync(dir)) {
      const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(folder)?.[1];
      if (!scenario) continue;
      const checks = JSON.parse(readFileSync(join(dir, folder, 'checks.json'), 'utf8'));
      results.set(scenario, checks.filter((c) => c.status === 'FAILURE'));
    }
    require(results.size > 0, `no results: ${err.slice(0, 1000)}`);
    return results;
  } finally {
    rmSync(dir, { recursive: true });
  }
}
