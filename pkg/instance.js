// Makes an instance of a WebAssembly module for each client. An error that ends an instance (its memory is full, an internal check fails)
// ends only the client of that instance.
import { disconnected } from './life.js';

/** The result of calls into an instance that has ended: an empty list, which the glue code can destructure. */
const NOTHING = Object.freeze([]);

/** Bytes of a MiB. */
const MIB = 2 ** 20;

/**
 * Returns the functions and classes of the module, and `takeChanged`.
 * @param {(host: object) => {init: Function}} instantiate the factory that pkg/scripts/factory.mjs generates
 * @param {WebAssembly.Module} module
 * @param {ReturnType<typeof import('./life.js').newLife>} life ends when the instance does, and ends its pauses
 */
export async function instance(instantiate, module, life) {
  const guard = (exports) =>
    guarded(exports, (error) => {
      const size = Math.ceil(exports.memory.buffer.byteLength / MIB);
      life.end(disconnected(`the WebAssembly module has ended with ${size} MiB of memory in use: ${error}; create a new provider`));
    });
  let changed = false;
  const rootlightChanged = () => {
    changed = true;
  };
  const { init, ...rest } = instantiate({ guard, rootlightSleep: sleeper(life), rootlightChanged });
  await init({ module_or_path: module });
  /** Whether the answers since the last call may have caused events for subscribers. */
  const takeChanged = () => {
    const wasChanged = changed;
    changed = false;
    return wasChanged;
  };
  return { ...rest, takeChanged };
}

/** Wraps the exports of an instance. The first exception ends the instance, because its memory may be inconsistent then. */
function guarded(exports, onEnd) {
  /** Number of calls into the instance that run: JavaScript that the instance calls may call the instance. */
  let depth = 0;
  /** The error that has ended the instance. */
  let end;
  let isReported = false;
  const wrapped = (work) => (...args) => {
    if (end) {
      // The outer call into the instance must not continue either.
      if (depth > 0) throw end;
      return NOTHING;
    }
    depth += 1;
    try {
      return work(...args);
    } catch (error) {
      end ??= error ?? new Error('unknown');
      // Ends the outer call into the instance too.
      if (depth > 1) throw error;
      return NOTHING;
    } finally {
      depth -= 1;
      if (end && depth === 0 && !isReported) {
        isReported = true;
        onEnd(end);
      }
    }
  };
  const entries = Object.entries(exports);
  return Object.fromEntries(entries.map(([name, value]) => [name, typeof value === 'function' ? wrapped(value) : value]));
}

/** The function with which the module pauses. Its pauses do not keep Node.js running, and end with their client. */
function sleeper(life) {
  const sleeping = new Set();
  life.onEnd(() => {
    for (const wake of sleeping) wake();
  });
  return (milliseconds) =>
    new Promise((resolve) => {
      if (life.isOver) return resolve();
      const wake = () => {
        sleeping.delete(wake);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(wake, milliseconds);
      timer.unref?.();
      sleeping.add(wake);
    });
}
