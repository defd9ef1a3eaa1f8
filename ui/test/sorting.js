// The order of lists.
import assert from 'node:assert/strict';
import { story } from './person.js';
import { http, until } from './sidecar.js';

/** Makes the list of dead jobs look very long. @param {any} page */
const crowded = (page) => page.route(/\/api\/dead-jobs\?/, async (/** @type {any} */ route) => {
  const response = await route.fetch();
  await route.fulfill({ response, json: { ...await response.json(), total_count: 100_001, filtered_count: 100_001 } });
});

/** Makes the API refuse to sort dead jobs. @param {any} page */
const unsorted = (page) => page.route(/\/api\/dead-jobs\?.*sort=/, (/** @type {any} */ route) =>
  route.fulfill({ status: 400, json: { error: 'bad_request', reason: 'the list is too long to be sorted', request_id: 'x' } }));

export function sorting(world) {
  story(world, 'a list of some hundreds is sorted by any column, page by page', async (me) => {
    await me.go('Retries');
    const table = me.find('table', 'retries');
    await me.listed.reads(/retries, soonest first/);
    const heads = async () => (await table.find('row').texts()).slice(1).map((t) => /\b(\d+)\/11\b/.exec(t)?.[1]).map(Number);
    await me.filter('class:SyncInventory');
    await table.find('button', 'Attempt').click();
    await until('it is in the address', () => me.address() === '/retries?class=SyncInventory&sort=-attempt');
    await until('the most attempts come first', async () => { const all = await heads(); return all.length === 50 && all[0] === 6 && all.every((n, i) => !i || n <= all[i - 1]); });
    await me.listed.reads(/^1–50 of \d+ matching, of \d+, sorted by attempt/);
    const last = (await heads()).at(-1);
    await me.find('button', 'Next page').click();
    await me.listed.reads(/^51–/);
    await until('the next page has fewer', async () => (await heads())[0] <= last);
    await table.find('button', 'Next retry').click();
    assert.equal(await me.find('columnheader', 'Next retry').state('sort'), 'ascending');
  });

  story(world, 'a list that is too long to be sorted says so', async (me) => {
    await me.go('Dead');
    await me.find('table', 'dead jobs').find('row').nth(3).seen();
    await me.find('table', 'dead jobs').find('button', 'Class').click();
    await me.notes.reads(/Lists of more than 100,000 jobs are in order of time\. Filter by time to sort them/);
    assert.equal(me.address(), '/dead-jobs');
    await me.listed.reads(/^1–50 of [\d,]+ dead jobs, newest first/);
  }, { prepare: crowded });

  story(world, 'a list that became too long to be sorted is in its own order again, and says why', async (me) => {
    await me.go('Dead');
    await me.find('table', 'dead jobs').find('button', 'Class').click();
    await me.notes.reads(/the list is too long to be sorted/);
    await until('it is in its own order', () => me.address() === '/dead-jobs');
    await me.listed.reads(/^1–50 of [\d,]+ dead jobs, newest first/);
  }, { prepare: unsorted, expected: /sort=class|status of 400/ });

  story(world, 'a list of many hundreds is turned round by the server, and each page of it', async (me) => {
    const at = Date.now() / 1000 + 100_000;
    await http(`${world.base}/api/jobs`, 'POST', Array.from({ length: 620 }, (_, i) => ({ jid: `round-${i}`, class: 'TurnedRound', queue: 'bulk', args: [i], at: at + i })));
    await until('they are listed', async () => (await http(`${world.base}/api/scheduled-jobs?class=TurnedRound&page=1`)).filtered_count === 620);
    await me.go('Scheduled');
    await me.filter('class:TurnedRound');
    const table = me.find('table', 'scheduled jobs');
    const args = async () => (await table.find('row').texts()).slice(1).map((t) => Number(/\[(\d+)\]/.exec(t)?.[1]));
    await me.listed.reads(/^1–50 of 620 matching, of \d+, soonest first/);
    await table.find('button', 'Due').click();
    await me.listed.reads(/^1–50 of 620 matching, of \d+, latest first/);
    assert.equal(me.address(), '/scheduled-jobs?class=TurnedRound&sort=-at');
    await until('the last one is the first', async () => { const all = await args(); return all.length === 50 && all.every((n, i) => n === 619 - i); });
    assert.equal(await table.find('columnheader', 'Due').state('sort'), 'descending');
    await me.find('button', 'Next page').click();
    await until('the next page continues', async () => (await args())[0] === 569);
    await me.find('button', 'Copy as curl').click();
    await me.copied(/scheduled-jobs\?class=TurnedRound&page=2&page_size=50&sort=-at'$/);
    await table.find('button', 'Due').click();
    await until('it is as before, from its beginning', async () => me.address() === '/scheduled-jobs?class=TurnedRound' && (await args())[0] === 0);
  });
}
