// The longest tasks of a page's thread, from a trace of headless Chromium: how long each took, how much of that was processor time, and
// what ran in it.

const CATEGORIES = ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'v8', 'disabled-by-default-v8.compile', 'blink.user_timing', 'toplevel', 'loading'];

/** Tasks that are told, and parts of each. */
const TASKS = 3;
const PARTS = 3;

const millis = (micros) => (micros / 1_000).toFixed(1);

/** What an event is about, such as the function that ran. */
function about({ name, args: { data = {} } = {} }) {
  const file = (data.url ?? data.fileName ?? '').split('/').at(-1);
  const where = [data.functionName, file && `${file}${data.lineNumber ? `:${data.lineNumber}` : ''}`].filter(Boolean).join(' ');
  return where ? `${name} ${where}` : name;
}

/** The time that each kind of event takes by itself within a task, longest first. */
function partsOf(task, events) {
  const inside = events.filter((event) => event !== task && event.ts >= task.ts && event.ts + event.dur <= task.ts + task.dur);
  const own = new Map();
  const open = [];
  for (const event of inside.sort((a, b) => a.ts - b.ts || b.dur - a.dur)) {
    while (open.length > 0 && open.at(-1).ts + open.at(-1).dur <= event.ts) open.pop();
    const outer = open.at(-1);
    if (outer) own.set(outer, own.get(outer) - event.dur);
    own.set(event, event.dur);
    open.push(event);
  }
  const sums = new Map();
  for (const [event, time] of own) sums.set(about(event), (sums.get(about(event)) ?? 0) + time);
  return [...sums].sort(([, a], [, b]) => b - a).slice(0, PARTS);
}

/**
 * Traces the renderer of a page while work runs.
 * @returns {Promise<{value: unknown, tasks: {wall: number, processor: number, since: number, words: string}[]}>} the value of the work, and
 * the longest tasks by processor time, in milliseconds; `since` is from the start of the navigation
 */
export async function traced(browser, page, work) {
  await browser.startTracing(page, { categories: CATEGORIES });
  const value = await work();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  // Tabs of the browser's own have renderers too.
  const begun = traceEvents.filter(({ name, args }) => name === 'navigationStart' && args.data?.documentLoaderURL?.startsWith('http')).at(-1);
  if (!begun) return { value, tasks: [] };
  const main = traceEvents.filter(({ ph, pid, tid }) => ph === 'X' && pid === begun.pid && tid === begun.tid);
  const events = main.map((event) => ({ dur: 0, ...event })).filter(({ ts }) => ts >= begun.ts);
  const tasks = events.filter(({ name }) => name === 'RunTask' || name === 'ThreadControllerImpl::RunTask');
  // One task is told by several events. The clock of processor time may be read late, after other tasks.
  const processor = ({ dur, tdur = dur }) => Math.min(dur, tdur);
  const outermost = tasks.filter((task) => !tasks.some((other) => other !== task && other.ts <= task.ts && other.ts + other.dur >= task.ts + task.dur && (other.dur > task.dur || tasks.indexOf(other) < tasks.indexOf(task))));
  const longest = outermost.sort((a, b) => processor(b) - processor(a)).slice(0, TASKS);
  const told = longest.map((task) => ({
    wall: task.dur / 1_000, processor: processor(task) / 1_000, since: (task.ts - begun.ts) / 1_000,
    words: partsOf(task, events).map(([what, time]) => `${what} ${millis(time)}`).join(', '),
  }));
  return { value, tasks: told };
}
