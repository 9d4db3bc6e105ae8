// The recorded node, served on loopback for the tests of one file.
import { after } from 'node:test';
import { serveRecording } from './upstream.mjs';

/** The served recording. Its server is closed after the last test of the file. */
export async function recordingForTests() {
  const served = await serveRecording();
  after(() => served.upstream.close());
  return served;
}
