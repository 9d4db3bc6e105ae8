// Bars of requests by day.
import { date, number } from './dom.js';

const [HEIGHT, LEFT, BOTTOM] = [220, 48, 24];
/** Widths between which a drawing is not scaled, in pixels. */
const [NARROWEST, WIDEST] = [280, 1200];

function shape(name, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** The lowest of 1, 2, 5, 10, 20, ... that is not below a number. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return power * [1, 2, 5, 10].find((step) => step * power >= value);
}

const short = (value) => Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(value);

/** Every day of a range, also those without use. */
export function everyDay(days, today, count) {
  const known = new Map(days.map((each) => [each.day, each]));
  return Array.from({ length: count }, (_, at) => {
    const day = today - count + 1 + at;
    return known.get(day) ?? { day, requests: 0, weight: 0, refused: 0 };
  });
}

/** Draws requests, and refused messages on top of them, for a place of so many pixels. */
export function chart(days, place) {
  const width = Math.min(WIDEST, Math.max(NARROWEST, place));
  const top = roundUp(Math.max(...days.map(({ requests, refused }) => requests + refused), 2));
  const total = days.reduce((sum, { requests }) => sum + requests, 0);
  const label = `Requests by day, ${date(days[0].day)} to ${date(days.at(-1).day)}: ${number(total)} in all. The numbers are in the table below.`;
  const svg = shape('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': label, class: 'chart' });
  const room = HEIGHT - BOTTOM - 10;
  const y = (value) => HEIGHT - BOTTOM - (value / top) * room;
  for (const part of [0, 0.5, 1]) {
    svg.append(shape('line', { x1: LEFT, x2: width, y1: y(top * part), y2: y(top * part), class: 'rule' }));
    svg.append(shape('text', { x: LEFT - 8, y: y(top * part) + 4, 'text-anchor': 'end' }, short(top * part)));
  }
  const step = (width - LEFT) / days.length;
  const each = Math.ceil(days.length / Math.floor(width / 90));
  days.forEach(({ day, requests, refused }, at) => {
    const span = { x: LEFT + at * step + step * 0.12, width: step * 0.76 };
    const bar = shape('g', {});
    bar.append(shape('title', {}, `${date(day)}: ${number(requests)} requests, ${number(refused)} messages refused`));
    bar.append(shape('rect', { ...span, y: y(requests), height: y(0) - y(requests), class: 'used' }));
    bar.append(shape('rect', { ...span, y: y(requests + refused), height: y(requests) - y(requests + refused), class: 'refused' }));
    svg.append(bar);
    if (at % each === 0) svg.append(shape('text', { x: LEFT + at * step, y: HEIGHT - 6 }, date(day).slice(5)));
  });
  return svg;
}

/** A bar beside a number, as long as its part of the longest. */
export function bar(value, longest) {
  const svg = shape('svg', { viewBox: '0 0 100 8', preserveAspectRatio: 'none', class: 'part', 'aria-hidden': 'true' });
  svg.append(shape('rect', { x: 0, y: 0, width: (100 * value) / Math.max(1, longest), height: 8, rx: 1, class: 'used' }));
  return svg;
}
