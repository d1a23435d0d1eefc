// One line per check, and the totals at the end.
let passed = 0;
let failed = 0;

// check runs f and returns what it returns; undefined when it failed.
export async function check(name, f) {
  try {
    const result = await f();
    passed++;
    console.log(`ok    ${name}`);
    return result;
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}: ${error?.message ?? error}`);
    return undefined;
  }
}

// skip says what is not checked here, and why.
export function skip(name, reason) {
  console.log(`skip  ${name}: ${reason}`);
}

// require throws unless the condition holds.
export function require(condition, message) {
  if (!condition) throw new Error(message);
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}
