// @ts-check
// A heat map: how many jobs took how long, column by column.

/** @param {any} u @param {any} p */
export function heat(u, p) {
  const { bounds, rows } = p.buckets;
  const most = rows.reduce((/** @type {number} */ m, /** @type {any} */ r) => Math.max(m, ...(r || [0])), 1);
  const ctx = u.ctx;
  const step = p.x.length > 1 ? p.x[1] - p.x[0] : 60;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  rows.forEach((/** @type {any} */ row, /** @type {number} */ i) => {
    if (!row) return;
    const x = u.valToPos(p.x[i], 'x', true);
    const w = Math.max(1, u.valToPos(p.x[i] + step, 'x', true) - x - 1);
    for (let b = 0; b <= bounds.length; b++) {
      if (!row[b]) continue;
      const y = u.valToPos(b + 1, 'y', true);
      const h = Math.max(1, u.valToPos(b, 'y', true) - y - 1);
      ctx.fillStyle = shade(Math.log1p(row[b]) / Math.log1p(most));
      ctx.fillRect(x, y, w, h);
    }
  });
  ctx.restore();
}

/** From pale green over yellow to red. @param {number} part */
function shade(part) {
  const hue = 145 - 135 * part;
  return `hsl(${hue} 60% ${62 - 14 * part}% / ${0.3 + 0.7 * part})`;
}
