// The admin page of a running front end in Chromium. The test of the program starts it, and names it by ADMIN_URL and
// ADMIN_TOKEN (native/cli/tests/cluster/admin_program.rs). ADMIN_PICTURES names a folder for pictures of the page.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from '../lib/browser.mjs';

const { ADMIN_URL: URL, ADMIN_TOKEN: TOKEN, ADMIN_PICTURES: PICTURES } = process.env;
const HOSTILE = '<img src=x onerror=alert(1)>';
const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Asks as a program does. */
async function ask(path, body) {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const answer = await fetch(`${URL}api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

async function signIn(page) {
  await ready(page);
  await page.getByLabel('Token').fill(TOKEN);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForSelector('#chart svg');
}

/** Runs work with the page, then checks that it broke no rule. */
async function onPage(work, options) {
  const tab = await openPage(browser, URL, options);
  try {
    await work(tab.page, tab);
    assert.deepEqual(tab.complaints.filter((line) => !/status of 40[01]/.test(line)), [], 'errors and foreign requests');
    assert.deepEqual(await tab.page.evaluate(() => globalThis.violations), [], 'violations of the policy');
    for (const { url } of tab.requests) assert.ok(!url.includes(TOKEN) && !url.includes('?'), url);
  } finally {
    await tab.close();
  }
}

const rows = (page) => page.locator('#keys tbody tr');

test('a key with a hostile name is made, shown as text, changed and revoked', async () => {
  await onPage(async (page) => {
    await signIn(page);
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByLabel('Name', { exact: true }).fill(HOSTILE);
    await page.getByLabel('Requests per second').fill('25');
    await page.getByRole('button', { name: 'Make the key' }).click();
    const key = await page.locator('#new-key-text').textContent();
    assert.match(key, /^[a-z2-7]{8}\.[\w-]{43}$/);
    const [id] = key.split('.');
    await page.getByLabel('Search').fill('<IMG');
    await page.keyboard.press('Enter');
    await page.waitForFunction((name) => document.querySelector('#keys bdi')?.textContent === name, HOSTILE);
    assert.equal(await page.locator('#main img').count(), 0);
    assert.match(await rows(page).first().textContent(), /25 a second, 50 at once/);

    await page.getByRole('button', { name: `Change key ${id}` }).click();
    assert.equal(await page.getByLabel('Requests per second').inputValue(), '25');
    await page.getByLabel('Methods', { exact: true }).fill('no_such');
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    await page.locator('dialog .note.bad').waitFor();
    await page.getByLabel('Methods', { exact: true }).fill('eth_*');
    await page.getByLabel('Requests per second').fill('');
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    await page.waitForFunction(() => document.querySelector('#keys .limits')?.textContent === 'methods: eth_*');

    await page.getByRole('button', { name: `Usage key ${id}` }).click();
    await page.waitForFunction((name) => document.querySelector('#usage-of')?.textContent.startsWith(name), HOSTILE);
    await page.getByRole('button', { name: 'Show all keys' }).click();

    await page.getByRole('button', { name: `Revoke key ${id}` }).click();
    assert.match(await page.locator('dialog p').first().textContent(), /onerror/);
    assert.equal(await page.locator('dialog img').count(), 0);
    await page.keyboard.press('Escape');
    assert.equal((await ask('keys/list', { search: id })).keys[0].revoked, null, 'nothing happens without confirmation');
    await page.getByRole('button', { name: `Revoke key ${id}` }).click();
    await page.getByRole('button', { name: 'Revoke for good' }).click();
    await page.waitForFunction(() => document.querySelector('#keys .badge.bad')?.textContent === 'revoked');
    assert.notEqual((await ask('keys/list', { search: id })).keys[0].revoked, null);
    await page.getByRole('button', { name: 'I have it' }).click();
    assert.ok(!(await page.content()).includes(key), 'the key is forgotten');
  });
});

test('a wrong token is told, the right one is kept in no place that outlives the page', async () => {
  await onPage(async (page) => {
    await ready(page);
    await page.getByLabel('Token').fill('x'.repeat(40));
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#status')?.textContent.includes('wrong'));
    assert.ok(await page.locator('#signed-in').isHidden());
    assert.match(await page.locator('#enter').textContent(), /For the operator of this service/);
    await signIn(page);
    // Words of the code say nothing to an operator.
    assert.match(await page.locator('#health').textContent(), /Messages held to limits: 0 here, 0 by the store, 0 while the store was away/);
    assert.match(await page.locator('section', { hasText: 'Backends' }).first().textContent(), /Demerits are points/);
    const kept = await page.evaluate(() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href]));
    assert.ok(!kept.includes(TOKEN));
    await page.reload();
    await ready(page);
    assert.ok(await page.locator('#signed-in').isHidden(), 'a reload asks again');
  });
});

test('pages of keys are turned by keyboard', async () => {
  for (let made = 0; made < 26; made += 1) await ask('keys/create', { change: { name: `page ${String(made).padStart(2, '0')}` } });
  await onPage(async (page) => {
    await signIn(page);
    await page.getByLabel('Search').fill('page');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelectorAll('#keys tbody tr').length === 25);
    await page.locator('#next').focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelectorAll('#keys tbody tr').length === 1);
    assert.match(await rows(page).textContent(), /page 25/);
    assert.ok(await page.locator('#next').isDisabled());
    await page.locator('#back').press('Enter');
    await page.waitForFunction(() => document.querySelectorAll('#keys tbody tr').length === 25);
  });
});

test('axe-core finds nothing, on desktop and phone, dark and light', async () => {
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  for (const [name, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      const tab = await openPage(browser, URL, { viewport, colorScheme });
      try {
        const { page } = tab;
        await ready(page);
        const check = async (what) => {
          if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name}-${colorScheme}-${what}.png`), fullPage: what !== 'dialog' });
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
          const found = violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.slice(0, 3).map(({ target }) => target).join('; ')}`);
          assert.deepEqual(found, [], `${name}, ${colorScheme}, ${what}`);
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width, `${name}: nothing is wider than the screen`);
        };
        await check('token');
        await signIn(page);
        await page.waitForSelector('#keys tbody th');
        await check('page');
        await page.evaluate(() => document.querySelectorAll('details').forEach((each) => { each.open = true; }));
        await check('open');
        await page.getByRole('button', { name: 'New key' }).click();
        await check('dialog');
      } finally {
        await tab.close();
      }
    }
  }
});
