// Draws the pictures of the documentation: every *.d2 file here, and the charts of tables in docs/benchmarks.md.
// Each picture holds the text that it was made from; the step `documents` of the tests compares both.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { D2 } from '@terrastruct/d2';
import { bars, dots, ranges } from './charts.mjs';

const here = (name) => new URL(name, import.meta.url);
const read = (name) => readFileSync(here(name), 'utf8');

/** Writes a picture `name`.svg with its source: a path from the root of the repository, and the parts of that file that it was made from. */
function write(name, svg, path, parts) {
  const source = parts.map((part) => `<metadata data-source="${path}"><![CDATA[${part}]]></metadata>`).join('\n');
  // After the opening tag of the picture.
  const at = svg.indexOf('>', svg.indexOf('<svg')) + 1;
  writeFileSync(here(`${name}.svg`), `${svg.slice(0, at)}\n${source}\n${svg.slice(at).trimEnd()}\n`);
}

const d2 = new D2();
/** A light and a dark theme of D2, by its numbers. */
const themes = { themeID: 0, darkThemeID: 200, pad: 16, noXMLTag: true };
for (const file of readdirSync(here('.')).filter((file) => file.endsWith('.d2'))) {
  const [name, text] = [file.slice(0, -'.d2'.length), read(file)];
  const { diagram, renderOptions } = await d2.compile(text, { layout: 'elk' });
  const svg = await d2.render(diagram, { ...renderOptions, ...themes, salt: name });
  write(name, svg, `docs/diagrams/${file}`, [text]);
}

/** The page whose tables are drawn as charts. */
const PAGE = 'docs/benchmarks.md';
const page = read('../benchmarks.md');

/** The table of the page whose head begins with `head`: its text, and the cells of its rows without marks. */
function table(head) {
  const text = page.split('\n\n').find((part) => part.startsWith(`| ${head}`));
  if (!text) throw new Error(`${PAGE} has no table "${head}"`);
  const [, , ...rows] = text.split('\n').map((row) => row.split('|').slice(1, -1).map((cell) => cell.replaceAll(/[`*]/g, '').trim()));
  return { text, rows };
}

/** Draws a chart of the named tables. */
function chart(name, draw, ...heads) {
  const tables = heads.map(table);
  write(name, draw(tables.map(({ rows }) => rows)), PAGE, tables.map(({ text }) => text));
}

chart('light-clients', bars, '250 holders in one state', 'the first call after a block');
chart('nodes', ranges, 'workload | compared with');
chart('requests', dots, 'request | rootlight');
// The compiler's worker keeps the process alive.
process.exit(0);
