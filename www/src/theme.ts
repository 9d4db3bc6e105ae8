// Dark and light: the system's choice, unless the visitor presses the button.
import { createStore, get, set } from 'idb-keyval';
import { byId } from './dom.ts';

type Theme = 'dark' | 'light';

const KEY = 'theme';

/** Where the choice is kept. `localStorage` would stop the thread until the browser has read it from the disk. */
function store() {
  return createStore('rootlight-page', 'choices');
}

/** Storage may be denied; the choice then lasts as long as the page. */
async function kept(): Promise<Theme | undefined> {
  const value: unknown = await get(KEY, store()).catch(() => undefined);
  return value === 'dark' || value === 'light' ? value : undefined;
}

async function keep(value: Theme): Promise<void> {
  await set(KEY, value, store()).catch(() => {});
}

export function theme(): void {
  const button = byId('theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen: Theme | undefined;
  const apply = () => {
    const dark = chosen === undefined ? system.matches : chosen === 'dark';
    document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
    button.setAttribute('aria-pressed', String(dark));
  };
  button.addEventListener('click', () => {
    chosen = document.documentElement.dataset['theme'] === 'dark' ? 'light' : 'dark';
    void keep(chosen);
    apply();
  });
  system.addEventListener('change', apply);
  apply();
  void kept().then((value) => {
    chosen ??= value;
    apply();
  });
}
