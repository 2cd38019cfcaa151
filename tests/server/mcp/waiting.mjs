// A server with a pool "narrow" of one sandbox, and two tenants: what becomes of calls that wait for it.
//   HEARTH_OPS          where its metrics are
//   HEARTH_OTHER_TOKEN  of another tenant than HEARTH_TOKEN
import {spawn} from 'node:child_process';

import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import {base, call, check, everyKind, good, info, later, open, overHttp, test, text, until, withClient} from './support.mjs';

const pool = 'narrow';
const depth = async () => Number(/^hearth_claim_queue_depth\{pool="narrow"\} (\d+)/m.exec(
    await (await fetch(`${process.env.HEARTH_OPS}/metrics`)).text())[1]);
const line = (count) => until(`a line of ${count}`, async () => await depth() === count);
const waiting = (messages) => messages.some((message) => /^waiting for a sandbox of pool narrow/.test(message));
const close = (client, id) => good(client, 'workspace_close', {workspace_id: id});

for (const [kind, make] of Object.entries(everyKind)) {
    const client = (sentence, body) => test(`mcp ${kind}: ${sentence}`, () => withClient(make, body));

    await client('a run that waits for a sandbox says so, and runs when there is one', async (c) => {
        const held = await open(c, {pool});
        const messages = [];
        const ended = later(good(c, 'run', {pool, command: 'echo $((6*7))'}, {onprogress: (news) => messages.push(news.message)}));
        await until('news of the wait', () => waiting(messages));
        await line(1);
        await close(c, held);
        check(text(await ended).includes('42'), text(await ended));
    });
    await client('a cancelled wait leaves the line at once', async (c) => {
        const held = await open(c, {pool});
        for (const [name, args] of [['workspace_open', {pool}], ['run', {pool, command: 'true'}]]) {
            const stop = new AbortController();
            const messages = [];
            const slow = later(call(c, name, args, {signal: stop.signal, onprogress: (news) => messages.push(news.message)}));
            await until('news of the wait', () => waiting(messages));
            stop.abort('enough');
            check(await slow.then(() => false, () => true), 'it was not cancelled');
            await line(0);
        }
        await close(c, held);
        // Nobody is before it, and nothing was made for those who went.
        const next = await open(c, {pool});
        const mine = text(await good(c, 'workspace_list'));
        check(mine.includes(next) && mine.split('\n').length === 1, mine);
        await close(c, next);
    });
}

await test('mcp v1 http: many waits of a tenant hold nobody else\'s calls, and not its own', () => withClient(overHttp['v1 http'], async (c) => {
    const held = await open(c, {pool});
    const waits = [];
    // More than a tenant's share of the workers.
    while (waits.length < 60) {
        for (let i = 0; i < 20; ++i) {
            const stop = new AbortController();
            waits.push({stop, answer: later(call(c, 'run', {pool, command: 'true'}, {signal: stop.signal}))});
        }
        await line(waits.length);
    }
    const ordinary = async (one) => {
        for (let i = 0; i < 10; ++i) check(text(await good(one, 'run', {pool: 'shell', command: 'echo $((6*7))'})).includes('42'), 'no output');
    };
    await ordinary(c);
    const authorization = `Bearer ${process.env.HEARTH_OTHER_TOKEN}`;
    const other = () => [new Client(info), new StreamableHTTPClientTransport(new URL(base + '/mcp'),
        {requestInit: {headers: {Authorization: authorization}}}), 'v1'];
    await withClient(other, ordinary);
    for (const {stop} of waits) stop.abort('enough');
    const answers = await Promise.allSettled(waits.map(({answer}) => answer));
    check(answers.every(({status}) => status === 'rejected'), 'a wait was answered');
    await line(0);
    await close(c, held);
}));

await test('mcp v1 http: a server that stops tells those who wait', () => withClient(overHttp['v1 http'], async (c) => {
    const held = await open(c, {pool});
    const wait = later(call(c, 'run', {pool, command: 'true'}));
    await line(1);
    await new Promise((ended) => spawn('sh', ['-c', process.env.HEARTH_RESTART], {stdio: 'ignore'}).on('close', ended));
    const result = await wait;
    check(result.isError && /UNAVAILABLE/.test(text(result)), JSON.stringify(result));
    await close(c, held);
}));
