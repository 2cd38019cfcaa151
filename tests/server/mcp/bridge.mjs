// What only the program `hearth mcp` does, which speaks to a server for a client of standard input and output.
import {spawnSync} from 'node:child_process';
import {existsSync, readFileSync, symlinkSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

import {bin, call, check, exists, good, info, kept, later, modern, open, overStdio, Skip, test, tools, until, withClient, withFolder}
    from './support.mjs';

const bytes = Buffer.from([0, 1, 2, 255]);

for (const [kind, make] of Object.entries(overStdio)) {
    await test(`mcp ${kind}: moves files between the user's disk and a workspace, and nothing outside of its root`, () =>
        withFolder((root) => withFolder((outside) => withClient(() => make(root), async (c) => {
            const list = (await c.listTools()).tools;
            const properties = (name) => list.find((t) => t.name === name).inputSchema.properties;
            check(list.length === tools.length, 'tools are missing');
            check(properties('file_put').local_path && properties('file_get').save_to, 'no local arguments');
            const id = await open(c);
            writeFileSync(join(root, 'in.bin'), bytes);
            await good(c, 'file_put', {workspace_id: id, path: 'data.bin', local_path: 'in.bin'});
            await good(c, 'file_get', {workspace_id: id, path: 'data.bin', save_to: 'deep/down/out.bin'});
            check(readFileSync(join(root, 'deep/down/out.bin')).equals(bytes), 'the bytes differ');
            symlinkSync(outside, join(root, 'way-out'));
            for (const path of ['../x.bin', join(outside, 'x.bin'), 'way-out/x.bin']) {
                const refused = await call(c, 'file_get', {workspace_id: id, path: 'data.bin', save_to: path});
                check(refused.isError, `${path} was not refused`);
            }
            check(!existsSync(join(outside, 'x.bin')), 'it wrote outside of its root');
            await good(c, 'workspace_close', {workspace_id: id});
        }))));
}

for (const kind of Object.keys(overStdio).filter(modern)) {
    await test(`mcp ${kind}: what was cancelled holds nothing in the bridge, be it a run or a subscription`, () => withClient(overStdio[kind], async (c) => {
        const id = await open(c);
        // More than the bridge has threads, of which each of these has one.
        for (let i = 0; i < 40; ++i) {
            const subscription = await c.listen({toolsListChanged: true});
            await subscription.close();
            check(await subscription.closed === 'local', 'it was ended by another');
        }
        for (let i = 0; i < 40; ++i) {
            const stop = new AbortController();
            const slow = later(call(c, 'run', {workspace_id: id, command: `echo > ${i}; sleep 47`}, {signal: stop.signal}));
            await until('its begin', () => exists(c, id, `${i}`));
            stop.abort('enough');
            check(await slow.then(() => false, () => true), 'it was not cancelled');
        }
        check((await c.listTools()).tools.length === tools.length, 'tools are missing');
        await good(c, 'workspace_close', {workspace_id: id});
    }));
}

await test('mcp stdio: without a server initialize says how to start one', async () => {
    if (!bin) throw new Skip('HEARTH_BIN is not set');
    const params = {protocolVersion: '2025-11-25', capabilities: {}, clientInfo: info};
    const hello = {jsonrpc: '2.0', id: 0, method: 'initialize', params};
    const done = spawnSync(bin, ['mcp', '--url', 'http://127.0.0.1:9'],
        {input: JSON.stringify(hello) + '\n', env: kept, timeout: 5_000});
    const answer = JSON.parse(done.stdout.toString());
    check(answer.id === 0 && /hearth serve/.test(answer.error.message), done.stdout.toString());
    check(done.status === 0, 'it did not exit promptly at the end of input');
});
