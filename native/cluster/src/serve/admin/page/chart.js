// Draws requests by day as bars, and single bars beside numbers, as SVG.
import { date, number } from './dom.js';

/** Height of the drawing, and the margins for the labels of the axes; all lengths are in pixels. */
const [HEIGHT, LEFT, BOTTOM] = [220, 48, 24];
/** The margin above the highest line. */
const TOP = 10;
/** The width of the drawing is that of its container within these bounds; beyond them the browser scales it. */
const [MIN_WIDTH, MAX_WIDTH] = [280, 1200];
/** Least distance between two dates on the axis. */
const DATE_WIDTH = 90;

/** An SVG element with attributes and text. */
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

/** A number in short form, such as 1.2K. */
const short = (value) => Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(value);

/** The last `count` days up to `today`; those without usage have zeros. */
export function everyDay(days, today, count) {
  const known = new Map(days.map((each) => [each.day, each]));
  return Array.from({ length: count }, (_, at) => {
    const day = today - count + 1 + at;
    return known.get(day) ?? { day, requests: 0, weight: 0, refused: 0 };
  });
}

/** Draws requests, and refused messages on top of them, for a container of this width. */
export function chart(days, available) {
  const width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, available));
  // At least 2, so that half of it is a whole number.
  const top = roundUp(Math.max(...days.map(({ requests, refused }) => requests + refused), 2));
  const total = days.reduce((sum, { requests }) => sum + requests, 0);
  const label = `Requests by day, ${date(days[0].day)} to ${date(days.at(-1).day)}: ${number(total)} in all. The numbers are in the table below.`;
  const svg = shape('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': label, class: 'chart' });
  const plotHeight = HEIGHT - BOTTOM - TOP;
  const y = (value) => HEIGHT - BOTTOM - (value / top) * plotHeight;
  for (const part of [0, 0.5, 1]) {
    svg.append(shape('line', { x1: LEFT, x2: width, y1: y(top * part), y2: y(top * part), class: 'rule' }));
    svg.append(shape('text', { x: LEFT - 8, y: y(top * part) + 4, 'text-anchor': 'end' }, short(top * part)));
  }
  const step = (width - LEFT) / days.length;
  // Every so many days have a date.
  const dateEvery = Math.ceil(days.length / Math.floor(width / DATE_WIDTH));
  days.forEach(({ day, requests, refused }, at) => {
    // A bar takes the middle 76 % of its day.
    const span = { x: LEFT + at * step + step * 0.12, width: step * 0.76 };
    const bar = shape('g', {});
    bar.append(shape('title', {}, `${date(day)}: ${number(requests)} requests, ${number(refused)} messages refused`));
    bar.append(shape('rect', { ...span, y: y(requests), height: y(0) - y(requests), class: 'used' }));
    bar.append(shape('rect', { ...span, y: y(requests + refused), height: y(requests) - y(requests + refused), class: 'refused' }));
    svg.append(bar);
    if (at % dateEvery === 0) svg.append(shape('text', { x: LEFT + at * step, y: HEIGHT - 6 }, date(day).slice(5)));
  });
  return svg;
}

/** A bar beside a number, whose length is the number's share of the largest one. */
export function bar(value, longest) {
  const svg = shape('svg', { viewBox: '0 0 100 8', preserveAspectRatio: 'none', class: 'part', 'aria-hidden': 'true' });
  svg.append(shape('rect', { x: 0, y: 0, width: (100 * value) / Math.max(1, longest), height: 8, rx: 1, class: 'used' }));
  return svg;
}
