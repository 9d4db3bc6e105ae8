// Checks that work in a page too, where `node:assert` does not exist.

/** Throws unless the condition holds. `what` names what is checked. */
export function must(condition, what) {
  if (!condition) throw new Error(`not as it must be: ${what}`);
}

/** Returns a `check(condition, what)` that works like `must` and counts the checks in `check.passed`, so that a test sees that all ran. */
export function countedChecks() {
  const check = (condition, what) => {
    must(condition, what);
    check.passed += 1;
  };
  check.passed = 0;
  return check;
}
