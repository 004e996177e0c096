// A table of which only the rows in sight exist, so that ten thousand scroll like ten.

import { el, mark } from './element.js';

const spare = 8;      // rows made beyond what is in sight
const onPaper = 500;  // rows printed at most

/**
 * Shows `items` in a <tbody>. Rows are `--row` high, those of headings `--head`. `make()` gives an empty <tr>,
 * `fill(tr, item, at)` makes it show an item; it is called again for what has not changed.
 */
export class Table {
  items = [];
  #heads = [];  // which items are headings: few
  #table;
  #body;
  #make;
  #fill;
  #above = el('tr', { class: 'gap', 'aria-hidden': 'true' }, el('td'));
  #below = this.#above.cloneNode(true);
  #rows = [];
  #begin = 0;
  #height = 0;
  #headHeight = 0;
  #top = 0;
  #waiting = false;
  #printed = false;

  constructor(table, { make, fill }) {
    this.#table = table;
    this.#body = table.tBodies[0];
    this.#make = make;
    this.#fill = fill;
    this.#body.append(this.#above, this.#below);
    addEventListener('scroll', () => this.#soon(), { passive: true });
    addEventListener('resize', () => { this.#measure(); this.#soon(); });
    const paper = matchMedia('print');
    paper.addEventListener('change', () => { this.#printed = paper.matches; this.#measure(); this.draw(); });
    new ResizeObserver(() => { this.#measure(); this.#soon(); }).observe(document.getElementById('main'));
    this.#measure();
  }

  show(items, heads = []) {
    this.items = items;
    this.#heads = heads;
    mark(this.#table, 'aria-rowcount', items.length + 1);
    this.draw();
  }

  /** Where the item is in sight; undefined: it is not. */
  rowAt(at) {
    return this.#rows[at - this.#begin];
  }

  /** The items that have a row. */
  shown() {
    return this.items.slice(Math.max(0, this.#begin), this.#begin + this.#rows.length);
  }

  /** Which item a row shows. */
  indexOf(row) {
    const at = this.#rows.indexOf(row);
    return at < 0 ? -1 : at + this.#begin;
  }

  /** Scrolls as little as it takes to have the item in sight. */
  reveal(at) {
    const head = this.#table.tHead.offsetHeight;
    const top = this.#top + this.#offset(at);
    if (top < scrollY + head) scrollTo({ top: top - head });
    else if (top + this.#height > scrollY + innerHeight) scrollTo({ top: top + this.#height - innerHeight });
    this.draw();
  }

  /** Where an item begins, px below the first one. */
  #offset(at) {
    const before = this.#heads.filter((head) => head < at).length;
    return at * this.#height - before * (this.#height - this.#headHeight);
  }

  /** The item at a place, px below the first one; one or two too early where headings are above it. */
  #itemAt(place) {
    let at = Math.floor(place / this.#height);
    while (this.#offset(at + 1) <= place) ++at;
    return at;
  }

  #measure() {
    const style = getComputedStyle(this.#table);
    [this.#height, this.#headHeight] = ['--row', '--head'].map((name) => parseFloat(style.getPropertyValue(name)));
    this.#top = this.#body.getBoundingClientRect().top + scrollY;
  }

  #soon() {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.draw();
    });
  }

  draw() {
    const count = this.items.length;
    const first = this.#printed ? 0 : this.#itemAt(scrollY - this.#top) - spare;
    const seen = this.#printed ? onPaper : Math.ceil(innerHeight / this.#height) + this.#heads.length + 2 * spare;
    const begin = Math.max(0, Math.min(first, count - seen));
    this.#have(Math.min(seen, count));
    this.#turn(begin - this.#begin);
    this.#begin = begin;
    this.#rows.forEach((row, at) => {
      mark(row, 'aria-rowindex', begin + at + 2);
      this.#fill(row, this.items[begin + at], begin + at);
    });
    this.#above.style.height = `${this.#offset(begin)}px`;
    this.#below.style.height = `${this.#printed ? 0 : this.#offset(count) - this.#offset(begin + this.#rows.length)}px`;
  }

  #have(count) {
    while (this.#rows.length < count) {
      const row = this.#make();
      this.#rows.push(row);
      this.#below.before(row);
    }
    for (const row of this.#rows.splice(count)) row.remove();
  }

  /** Rows that went out of sight at one end come in at the other. */
  #turn(by) {
    const steps = Math.abs(by);
    if (steps === 0 || steps >= this.#rows.length) return;
    const leaving = by > 0 ? this.#rows.splice(0, steps) : this.#rows.splice(-steps);
    if (leaving.some((row) => row.contains(document.activeElement))) this.#table.focus({ preventScroll: true });
    if (by > 0) {
      this.#rows.push(...leaving);
      this.#below.before(...leaving);
    } else {
      this.#rows.unshift(...leaving);
      this.#above.after(...leaving);
    }
  }
}
