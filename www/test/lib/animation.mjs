// Screenshots as one moving picture that needs no script and no program to show it: an SVG that lays one over the other.

/** Seconds for which a press is marked before the next screenshot. */
const PRESSED = 0.9;

/**
 * @param {{image: Buffer, seconds: number, press?: {x: number, y: number}}[]} frames WebP, how long each is seen, and what is pressed at its end
 * @param {{width: number, height: number, label: string}} picture
 * @returns {string} whoever asks for less motion sees the last screenshot
 */
export function animated(frames, { width, height, label }) {
  const whole = frames.reduce((sum, { seconds }) => sum + seconds, 0);
  const share = (seconds) => `${((100 * seconds) / whole).toFixed(1)}%`;
  const [styles, parts] = [[], []];
  let start = 0;
  frames.forEach(({ image, seconds, press }, at) => {
    if (at > 0) styles.push(`@keyframes frame${at} { 0% { opacity: 0 } ${share(start)} { opacity: 1 } }`, `#frame${at} { animation: frame${at} ${whole}s step-end infinite }`);
    parts.push(`<image id="frame${at}" width="${width}" height="${height}" href="data:image/webp;base64,${image.toString('base64')}"/>`);
    start += seconds;
    if (!press) return;
    const [from, middle, to] = [start - PRESSED, start - PRESSED / 2, start].map(share);
    styles.push(`@keyframes press${at} { 0%, ${from} { opacity: 0 } ${middle} { opacity: 0.6 } ${to}, 100% { opacity: 0 } }`, `#press${at} { opacity: 0; animation: press${at} ${whole}s infinite }`);
    parts.push(`<circle id="press${at}" cx="${Math.round(press.x)}" cy="${Math.round(press.y)}" r="18" fill="#f0b95a" stroke="#1c1f24" stroke-width="2"/>`);
  });
  styles.push('@media (prefers-reduced-motion: reduce) { * { animation: none !important } }');
  // The marks of presses lie above all screenshots.
  const drawn = [...parts.filter((part) => part.startsWith('<image')), ...parts.filter((part) => part.startsWith('<circle'))];
  return [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">`, `<style>${styles.join('\n')}</style>`, ...drawn, '</svg>', ''].join('\n');
}
