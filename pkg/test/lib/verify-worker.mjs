// A dedicated worker that checks the documents of a message. It answers with its class and how many it checked, or with
// the error.
import { scenario } from './verify-scenario.mjs';

self.onmessage = async ({ data }) => {
  try {
    const count = await scenario(await import('/verify.js'), data);
    self.postMessage([self.constructor.name, count]);
  } catch (error) {
    self.postMessage([String(error)]);
  }
};
