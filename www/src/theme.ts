// Chooses the dark or the light colours: those of the system, unless the visitor presses the button.
import { createStore, get, set, type UseStore } from 'idb-keyval';
import { byId } from './dom.ts';

type Theme = 'dark' | 'light';

/** The name of the choice in the storage. */
const KEY = 'theme';

/** The stored choice. Storage may be denied; a choice then lasts as long as the page. */
async function stored(store: UseStore): Promise<Theme | undefined> {
  try {
    const value: unknown = await get(KEY, store);
    return value === 'dark' || value === 'light' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Stores the choice. */
async function save(value: Theme, store: UseStore): Promise<void> {
  try {
    await set(KEY, value, store);
  } catch {
    // The choice is in effect all the same.
  }
}

/** Sets the colours, and follows the button and the system. */
export function theme(): void {
  const button = byId('theme');
  // Not `localStorage`: its first use blocks the page's thread until the browser has read the disk.
  const store = createStore('rootlight-page', 'choices');
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen: Theme | undefined;
  const apply = () => {
    const dark = chosen === undefined ? system.matches : chosen === 'dark';
    document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
    button.setAttribute('aria-pressed', String(dark));
  };
  button.addEventListener('click', () => {
    chosen = document.documentElement.dataset['theme'] === 'dark' ? 'light' : 'dark';
    void save(chosen, store);
    apply();
  });
  system.addEventListener('change', apply);
  apply();
  void stored(store).then((value) => {
    chosen ??= value;
    apply();
  });
}
