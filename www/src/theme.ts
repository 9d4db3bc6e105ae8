// Dark and light: the system's choice, unless the visitor presses the button.
import { createStore, get, set, type UseStore } from 'idb-keyval';
import { byId } from './dom.ts';

type Theme = 'dark' | 'light';

const KEY = 'theme';

/** Storage may be denied; the choice then lasts as long as the page. */
async function kept(store: UseStore): Promise<Theme | undefined> {
  try {
    const value: unknown = await get(KEY, store);
    return value === 'dark' || value === 'light' ? value : undefined;
  } catch {
    return undefined;
  }
}

async function keep(value: Theme, store: UseStore): Promise<void> {
  try {
    await set(KEY, value, store);
  } catch {
    // The choice is shown anyhow.
  }
}

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
    void keep(chosen, store);
    apply();
  });
  system.addEventListener('change', apply);
  apply();
  void kept(store).then((value) => {
    chosen ??= value;
    apply();
  });
}
