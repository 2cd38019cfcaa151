// What ends with what: a session that is deleted, and everything that is open while the server restarts.
import {spawn} from 'node:child_process';

import {base, call, check, connect, everyKind, headers, modern, overHttp, Skip, test, text, tools, until, withClient} from './support.mjs';

await test('mcp: a deleted session is not found', () => withClient(overHttp['v1 http'], async (c) => {
    const id = c.wire.sessionId;
    await c.wire.terminateSession();
    const answer = await fetch(base + '/mcp', {
        method: 'POST',
        headers: {...headers, 'content-type': 'application/json', 'mcp-session-id': id},
        body: JSON.stringify({jsonrpc: '2.0', id: 1, method: 'ping'}),
    });
    check(answer.status === 404, `status ${answer.status}`);
}));

/** A client of each kind, or why there is none. */
const open = {};
for (const [kind, make] of Object.entries(everyKind)) {
    open[kind] = await connect(make).then(async (client) => {
        const subscription = modern(kind) ? await client.listen({toolsListChanged: true}) : null;
        return {client, subscription, session: client.wire.sessionId};
    }).catch((error) => ({error}));
}
const restarted = process.env.HEARTH_RESTART
    ? await new Promise((ended) => spawn('sh', ['-c', process.env.HEARTH_RESTART], {stdio: 'ignore'}).on('close', ended))
    : new Skip('HEARTH_RESTART is not set');

for (const [kind, {client, subscription, session, error}] of Object.entries(open)) {
    const how = kind.endsWith('sse') ? 'in a new stream' : modern(kind) ? 'as if nothing had been' : 'in its session';
    await test(`mcp ${kind}: after a restart of the server a client goes on ${how}`, async () => {
        for (const reason of [error, restarted]) if (reason) throw reason instanceof Error ? reason : new Error('the restart failed');
        await until('a list', () => client.listTools({}, {timeout: 3_000}).then((list) => list.tools.length === tools.length, () => false));
        check(text(await call(client, 'run', {command: 'echo $((6*7))'})).includes('42'), 'no output');
        check(client.wire.sessionId === session, 'the session changed');
    });
    if (!subscription) continue;
    await test(`mcp ${kind}: a server that stops ends a subscription in good order`, async () => {
        if (restarted instanceof Error) throw restarted;
        const end = await subscription.closed;
        check(end === 'graceful', `it ended as ${end}`);
    });
}
for (const {client} of Object.values(open)) await client?.close();
