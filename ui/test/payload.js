// Arguments and records: copies of them, and their changes before they are sent.
import assert from 'node:assert/strict';
import { story } from './person.js';
import { http, until } from './sidecar.js';

/**
 * Makes a scheduled job with values that JSON.parse would change.
 * @param {any} world
 * @param {string} jid
 */
async function plant(world, jid) {
  const at = Math.round(Date.now() / 1000) + 90_000;
  const args = '[{"user":{"id":9007199254740993,"full name":"Zo\\u00eb"}},[1.10,2]]';
  const job = `{"jid":"${jid}","class":"PayloadOf","queue":"bulk","args":${args}}`;
  await world.publish('scheduled_jobs', `{"type":"scheduled_job","jid":"${jid}","scheduled_at":${at},"job":${job}}`);
  await until('it is read', async () => (await http(`${world.base}/api/scheduled-jobs?page=1&jid=${jid}`)).filtered_count === 1);
}

/** @param {any} me @param {string} jid */
async function look(me, jid) {
  await me.go('Scheduled');
  await me.filter('jid:' + jid);
  await me.find('table', 'scheduled jobs').find('link', 'PayloadOf').click();
  await me.find('region', 'the arguments').reads(/9007199254740993/);
}

/**
 * Makes the browser refuse the clipboard API, so that pages must copy in the old way.
 * @param {any} page
 */
const insecure = (page) => page.evaluate(() => { Object.defineProperty(navigator.clipboard, 'writeText', { value: () => Promise.reject(new Error('not here')) }); });

export function payload(world) {
  story(world, 'of each member of the arguments can be copied where it stands, and what it is', async (me) => {
    await plant(world, 'payload-copied');
    await look(me, 'payload-copied');
    const args = me.find('region', 'the arguments');
    assert.equal(await args.find('button', /^Copy/).count(), 0, 'nothing covers the text');
    await args.find('listitem').nth(2).pointAt();
    await args.find('button', 'Copy path args[0].user.id').click();
    await me.copied(/^args\[0\]\.user\.id$/);
    await me.notes.reads(/Copied args\[0\]\.user\.id/);
    await args.find('button', 'Copy value of args[0].user.id').click();
    await me.copied(/^9007199254740993$/);
    assert.equal(await args.find('button', /^Copy path/).count(), 1, 'of that one, and not of those around it');

    await me.pointAway();
    await args.find('listitem').first().press('End');
    await me.press('ArrowUp');
    await me.press('ArrowUp');
    for (const key of ['Tab', 'Tab', 'Enter']) await me.press(key);
    await me.copied(/^\[1\.10,2\]$/);
    await me.press('ArrowUp');
    await me.press('Tab');
    await args.find('button', 'Copy path args[0].user["full name"]').focused();
    await me.press('Enter');
    await me.copied(/^args\[0\]\.user\["full name"\]$/);
    await args.find('button', 'Copy value of args[0].user["full name"]').press('Enter');
    await me.copied(/^"Zo\\u00eb"$/);

    await me.find('button', 'Show the record').click();
    await me.pointAway();
    await me.find('region', 'the record').find('listitem').first().press('End');
    assert.equal(await args.find('button', /^Copy/).count(), 0);
    await me.press('Tab');
    await me.find('button', 'Copy path job.args[1][1]').focused();
  });

  story(world, 'a copy works where a page may not write to the clipboard, and the focus stays', async (me) => {
    await plant(world, 'payload-insecure');
    await look(me, 'payload-insecure');
    await me.find('region', 'the arguments').find('listitem').nth(1).press('ArrowDown');
    const path = me.find('button', 'Copy path args[0].user.id');
    await path.press('Enter');
    await me.copied(/^args\[0\]\.user\.id$/);
    await path.focused();
  }, { prepare: insecure });

  story(world, 'what changes in the arguments is shown before it is sent', async (me) => {
    await plant(world, 'payload-changed');
    await look(me, 'payload-changed');
    await me.find('button', 'Change', { exact: true }).click();
    const field = me.dialog.find('textbox', 'Arguments');
    const difference = me.dialog.find('group', 'Changes');
    const was = await field.value();
    assert.equal(await difference.count(), 0, 'nothing has changed');
    await field.fill(was.replace('9007199254740993', '9007199254740995'));
    await difference.reads(/^− removed: \[\{"user":\{"id":9007199254740993, \+ added: \[\{"user":\{"id":9007199254740995, "full name":"Zo\\u00eb"\}\}, \[1\.10, … 1 unchanged line$/);
    await me.dialog.reads(/\(1 line removed, 1 line added\)/);
    await field.fill(was);
    await difference.gone();
    await field.fill(`["${'x'.repeat(70_000)}"]`);
    await me.dialog.reads(/Diff not shown: the text has over 64 KiB/);
    await field.fill('["anything"]');
    await difference.reads(/\+ added: \["anything"\]$/);
    await me.dialog.find('button', 'Change').click();
    await me.find('region', 'the arguments').reads(/"anything"/);
  });
}
