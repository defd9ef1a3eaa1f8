// Runs in the page: what is wider than it, cut without saying so, covered by something else, or pushed in by an empty gutter.
export async function overflow() {
  await document.fonts.ready;
  const wrong = [];
  const name = (el) => `${el.tagName} “${el.textContent.trim().slice(0, 40)}”`;
  if (document.documentElement.scrollWidth > innerWidth) {
    const widest = [...document.querySelectorAll('main *')].filter((el) => !el.closest('.scroll, .sr') && el.getBoundingClientRect().right > innerWidth + 1).at(-1);
    wrong.push(`the page is ${document.documentElement.scrollWidth} wide${widest ? ', for ' + name(widest) : ''}`);
  }
  const nav = document.querySelector('nav.side')?.getBoundingClientRect();
  const left = document.querySelector('main > .page')?.getBoundingClientRect().left;
  const beside = nav && nav.height > nav.width ? nav.right : 0; // on phones it is a bar below
  if (left - beside > 24 && innerWidth <= 1720) wrong.push(`an empty gutter of ${left - beside} pixels`);
  for (const el of document.querySelectorAll('.acts button, .tools button')) {
    const r = el.getBoundingClientRect();
    if (r.width && (r.right > innerWidth + 1 || r.left < beside - 1)) wrong.push(`${el.ariaLabel || el.textContent} is cut off`);
  }
  const boxes = [];
  for (const el of document.querySelectorAll('main h1, main h2, main button, main a.btn, main input, main select, .counters dd, .counters dt, header *, nav.side a, .badge, .pill, .tag')) {
    const r = el.getBoundingClientRect();
    const style = getComputedStyle(el);
    if (!r.width || !r.height || style.position === 'absolute' || style.visibility === 'hidden' || el.closest('.sr, .cut, .code, svg, [aria-hidden=true]')) continue;
    const scrolls = el.closest('.scroll, .tabs, .seg, .feed') || (!beside && el.closest('nav.side'));
    if (!scrolls && el.scrollWidth > el.clientWidth + 1 && style.display !== 'inline' && style.textOverflow !== 'ellipsis' && el.clientWidth && !/INPUT|SELECT/.test(el.tagName)) wrong.push(`${name(el)} is cut`);
    if (!scrolls && r.right > innerWidth + 1) wrong.push(`${name(el)} sticks out`);
    if (/^(BUTTON|INPUT|SELECT|H1|H2)$/.test(el.tagName) && !el.closest('header, nav')) boxes.push([el, r]);
  }
  for (let i = 0; i < boxes.length && boxes.length < 400; i++) {
    for (let j = i + 1; j < boxes.length; j++) {
      const [[a, p], [b, q]] = [boxes[i], boxes[j]];
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (wide > 1 && high > 1 && !a.contains(b) && !b.contains(a)) wrong.push(`${name(a)} lies on ${name(b)}`);
    }
  }
  return wrong.slice(0, 10);
}
