// The verify-only module of the built package, in Node.js and in a real page.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { servePackage } from './lib/pages.mjs';
import { scenario } from './lib/verify-scenario.mjs';

const vectors = JSON.parse(readFileSync(new URL('../../tests/vectors/offline.json', import.meta.url), 'utf8'));

test('documents are checked in Node.js', async () => {
  assert.equal(await scenario(await import('../verify.js'), vectors), 8);
});

test('documents are checked in a page', async () => {
  const site = await servePackage();
  const browser = await startBrowser();
  try {
    await browser.open(`${site.url}/test/page.html`);
    const count = await browser.run(async (input) => {
      const { scenario } = await import('/test/lib/verify-scenario.mjs');
      return scenario(await import('/verify.js'), input);
    }, vectors);
    assert.equal(count, 8);
  } finally {
    await browser.close();
    await site.close();
  }
});
