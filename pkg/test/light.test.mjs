// The light client of the built package, in Node.js and in a real page, against a recorded node on loopback.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inPage } from './lib/in-page.mjs';
import { askEverything } from './lib/light-scenario.mjs';
import { questionsAbout } from './lib/questions.mjs';
import { recordingForTests } from './lib/recording.mjs';

const { node, options } = await recordingForTests();

test('answers about every recorded block, transaction, receipt and state are right in Node.js', async () => {
  const questions = questionsAbout(node, 0, node.head);
  const { right, wrong } = await askEverything(await import('../index.js'), options, questions);
  assert.deepEqual(wrong, []);
  assert.ok(right > 1000, `${right} answers`);
});

test('answers about every recorded block, transaction, receipt and state are right in a page', async () => {
  const questions = questionsAbout(node, 0, node.head);
  const work = async (settings, list) => {
    const { askEverything } = await import('/test/lib/light-scenario.mjs');
    return askEverything(await import('/index.js'), settings, list);
  };
  const { right, wrong } = await inPage((run) => run(work, options, questions));
  assert.deepEqual(wrong, []);
  assert.equal(right, questions.length);
});
