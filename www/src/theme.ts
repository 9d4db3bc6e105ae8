// Dark and light: the system's choice, unless the visitor presses the button.
import { byId } from './dom.ts';

const KEY = 'rootlight-theme';

/** Storage may be denied; the choice then lasts as long as the page. */
function kept(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(value: string): void {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // It lasts as long as the page.
  }
}

export function theme(): void {
  const button = byId('theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen = kept();
  const apply = () => {
    const dark = chosen === null ? system.matches : chosen === 'dark';
    document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
    button.setAttribute('aria-pressed', String(dark));
  };
  button.addEventListener('click', () => {
    chosen = document.documentElement.dataset['theme'] === 'dark' ? 'light' : 'dark';
    keep(chosen);
    apply();
  });
  system.addEventListener('change', apply);
  apply();
}
