// The light clients of the extension. Pages reach them through ports only, and may send requests and get events of their own
// subscriptions. The settings come from the extension's own page (options.html).
import { budgetOf } from './budget.js';
import { ENDED } from './client.js';
import { clientsFor } from './clients.js';
import { createProvider } from './rootlight/index.js';
import { sessionOf } from './session.js';
import { sitesBy } from './sites.js';
import { getDomain } from './tldts.js';

// Content scripts run in pages, which are not trusted with the settings: an address of a node may contain a key.
void chrome.storage.local.setAccessLevel({ accessLevel: 'TRUSTED_CONTEXTS' });

/** The pages that are connected. */
const sessions = new Set();

const siteOf = sitesBy(getDomain);

/** The browser ends this worker when it is idle; the next request starts it again from stored headers. */
const clients = clientsFor(async (origin) => {
  const { settings } = await chrome.storage.local.get('settings');
  if (!settings) throw Object.assign(new Error('name a node in the options of the extension'), { code: 4900 });
  const made = await createProvider(settings);
  made.on('message', (event) => sessions.forEach((session) => session.emit(event, made)));
  // The client of all pages tells whether nodes answer.
  if (origin) return made;
  // While no node answers; a client that has ended is another matter.
  const tell = (connection) => sessions.forEach((session) => session.tell(connection));
  made.on('disconnect', ({ code, message }) => code !== ENDED && tell({ code, message }));
  made.on('connect', ({ chainId }) => tell({ chainId }));
  return made;
}, siteOf);

chrome.storage.onChanged.addListener(() => {
  clients.end();
  for (const session of sessions) session.end();
});

chrome.runtime.onConnect.addListener((port) => {
  // The browser states the origin; a page cannot.
  const { origin, id } = port.sender;
  if (port.name !== 'rootlight' || id !== chrome.runtime.id || !origin || origin === 'null') return port.disconnect();
  const connection = clients.join(origin, () => session.end());
  const end = () => {
    sessions.delete(session);
    connection.leave();
  };
  const session = sessionOf(port, connection.provider, budgetOf(siteOf(origin)), end, origin === location.origin);
  sessions.add(session);
  port.onMessage.addListener(session.take);
  // Browsers tell only the side that has not disconnected.
  port.onDisconnect.addListener(session.end);
  return undefined;
});
