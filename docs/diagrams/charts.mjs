// Draws charts of measurements as SVG, from the rows of tables in docs/benchmarks.md (render.mjs). Colours follow the reader's colour scheme; each chart has a background of its own, so
// that it can be read where only one of page and browser is dark.

/** Sizes in pixels: of the picture, of the margins for names (left) and values (right), and of a row. */
const WIDTH = 840;
const LEFT = 356;
const RIGHT = 90;
const ROW = 24;

/** The classes of texts and shapes: `own` is Rootlight, `other` the programs that it is compared with. */
const STYLE = `
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
.title { font-weight: 600; }
.faint { fill: #59636e; font-size: 12px; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
.back { fill: #ffffff; }
.grid { stroke: #d1d9e0; }
.target { stroke: #cf222e; stroke-width: 2; }
.own { fill: #0d32b2; }
.second { fill: #9a6700; }
.other { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .faint { fill: #9198a1; stroke: #0d1117; }
  .back { fill: #0d1117; }
  .grid { stroke: #3d444d; }
  .target { stroke: #ff7b72; }
  .own { fill: #79a7ff; }
  .second { fill: #d29922; }
  .other { fill: #768390; }
}`;

/** A text for XML. */
const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
/** The number in a cell of a table, which has commas between thousands. */
function number(text) {
  const value = Number(text.replaceAll(',', ''));
  if (!Number.isFinite(value)) throw new Error(`"${text}" is not a number`);
  return value;
}
/** A text; `anchor` says which end of it is at `x`. */
const text = (x, y, words, kind = '', anchor = 'start') =>
  `<text x="${round(x)}" y="${round(y)}"${kind && ` class="${kind}"`} text-anchor="${anchor}">${escape(words)}</text>`;
/** A coordinate with one decimal. */
const round = (value) => Math.round(value * 10) / 10;
/** A vertical line. */
const line = (x, top, bottom, kind) =>
  `<line x1="${round(x)}" x2="${round(x)}" y1="${round(top)}" y2="${round(bottom)}" class="${kind}"/>`;
const box = (x, y, width, height, kind) =>
  `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${height}" rx="2" class="${kind}"/>`;

/** A picture of these parts. */
function svg(height, title, parts) {
  const size = `viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}"`;
  const back = `<rect width="${WIDTH}" height="${height}" class="back"/>`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escape(title)}">`;
  return `${head}\n<style>${STYLE}\n</style>\n${back}\n${parts.join('\n')}\n</svg>`;
}

/** A logarithmic scale from `low` to `high`: the function from a value to its x coordinate, and a line with its value at each of `marks`. */
function scale(low, high, marks, unit, top, bottom) {
  const x = (value) => LEFT + (Math.log(value / low) / Math.log(high / low)) * (WIDTH - LEFT - RIGHT);
  const lines = marks.flatMap((mark) => [
    line(x(mark), top, bottom, 'grid'),
    text(x(mark), bottom + 16, `${mark.toLocaleString('en')}${unit}`, 'faint', 'middle'),
  ]);
  return { x, lines };
}

/** The meaning of colours, in a row at height `y`. */
function legend(y, names) {
  let x = LEFT;
  return names.flatMap(([kind, name]) => {
    const parts = [box(x, y - 10, 12, 12, kind), text(x + 18, y, name, 'faint')];
    x += 40 + name.length * 7;
    return parts;
  });
}

/** A chart of bars, of two tables with rows of "client, calls a second", each with a scale of its own. */
export function bars([sameState, newBlock]) {
  const parts = [];
  let y = 24;
  for (const [title, rows] of [
    ['Proven calls a second: 250 holders in one state', sameState],
    ['Proven calls a second: the first call after a block', newBlock],
  ]) {
    parts.push(text(16, y, title, 'title'));
    const most = Math.max(...rows.map((row) => number(row[1])));
    let name = '';
    for (const [client, calls] of rows) {
      y += ROW;
      // "the same" stands for the client of the row above.
      name = client.startsWith('the same') ? client.replace('the same', name.split(',')[0]) : client;
      const width = (number(calls) / most) * (WIDTH - LEFT - RIGHT);
      parts.push(text(LEFT - 10, y + 4, name, '', 'end'));
      parts.push(box(LEFT, y - 8, width, 16, name.startsWith('Rootlight') ? 'own' : 'other'));
      parts.push(text(LEFT + width + 6, y + 4, calls, 'faint'));
    }
    y += 2 * ROW;
  }
  return svg(y - 20, 'Proven calls a second beside other light clients', parts);
}

/** A chart of ranges, of a table with rows of "workload, other node, target, ratios by the clock, ratios by processor time". */
export function ranges([rows]) {
  const [top, pitch] = [56, 48];
  const bottom = top + rows.length * pitch;
  const { x, lines } = scale(1, 200, [1, 2, 5, 10, 20, 50, 100, 200], '', top, bottom);
  // The second measurement of a row, by processor time, is drawn below the first.
  const names = [['own', 'by the clock'], ['second', 'by processor time'], ['target', 'target']];
  const parts = [text(16, 24, 'Times as fast as the other node', 'title'), ...legend(24, names.slice(0, 2)), ...lines];
  parts.push(line(LEFT + 310, 14, 26, 'target'), text(LEFT + 318, 24, 'target', 'faint'));
  let workload = '';
  rows.forEach(([name, other, target, ...measured], index) => {
    const y = top + index * pitch + pitch / 2;
    workload = name === 'the same' ? workload : name.split(/, (?:each|then|followed)/)[0];
    parts.push(text(LEFT - 10, y - 4, short(workload), '', 'end'));
    parts.push(text(LEFT - 10, y + 12, `beside ${other.split("'")[0]}`, 'faint', 'end'));
    parts.push(line(x(number(target)), y - 18, y + 18, 'target'));
    measured.forEach((range, at) => {
      const [low, high = low] = range.split(' to ').map(number);
      const row = y + (at ? 3 : -13);
      parts.push(box(x(low), row, Math.max(x(high) - x(low), 4), 10, at ? 'second' : 'own'));
      parts.push(text(x(high) + 8, row + 9, range.replace(' to ', '–'), 'faint'));
    });
  });
  return svg(bottom + 28, 'The development chain beside other nodes', parts);
}

/** A name that fits into the left margin. */
const short = (words) => (words.length > 42 ? `${words.slice(0, 41)}…` : words);

/** A chart of dots, of a table with rows of "request, microseconds of rootlight, anvil and go-ethereum". */
export function dots([rows]) {
  const top = 44;
  const bottom = top + rows.length * ROW;
  const { x, lines } = scale(10, 100_000, [10, 100, 1_000, 10_000, 100_000], ' µs', top, bottom);
  const names = [['own', 'rootlight'], ['second', 'anvil'], ['other', 'go-ethereum']];
  const parts = [text(16, 24, 'Processor time of a request', 'title'), ...legend(24, names), ...lines];
  rows.forEach(([request, ...times], index) => {
    const y = top + index * ROW + ROW / 2;
    parts.push(text(LEFT - 10, y + 4, request, '', 'end'));
    // The first is drawn last and smaller, so that equal times show as rings.
    [2, 1, 0].forEach((node) => {
      const circle = `cx="${round(x(number(times[node])))}" cy="${y}" r="${node ? 7 : 4.5}"`;
      parts.push(`<circle ${circle} class="${names[node][0]}"/>`);
    });
  });
  return svg(bottom + 28, 'Processor time of requests beside other nodes', parts);
}
