// What each kind of connection of both official clients must be able to do, one test for each.
import {call, check, everyKind, exists, good, later, modern, open, test, text, tools, until, withClient} from './support.mjs';

const countSleeps = 'n=0; for p in /proc/[0-9]*/cmdline; do tr "\\0" " " < $p 2>/dev/null | grep -q "^sleep 47" && n=$((n+1)); done; echo left=$n';

for (const [kind, make] of Object.entries(everyKind)) {
    const client = (sentence, body) => test(`mcp ${kind}: ${sentence}`, () => withClient(make, body));

    await client('connects and lists the ten tools in order', async (c) => {
        const list = (await c.listTools()).tools;
        check(list.map((t) => t.name).join() === tools.join(), `tools are ${list.map((t) => t.name)}`);
        check(list.every((t) => t.description && t.inputSchema.type === 'object'), 'a tool lacks something');
        if (!modern(kind)) await c.ping();
    });
    await client('a one shot runs', async (c) => {
        const out = text(await good(c, 'run', {command: 'echo $((6*7))'}));
        check(out.startsWith('ok, exit 0') && out.includes('42'), out);
    });
    await client('a bad argument is a result that names the allowed ones', async (c) => {
        const result = await call(c, 'run', {comand: 'true'});
        check(result.isError && /allowed: .*command/.test(text(result)), JSON.stringify(result));
        check((await call(c, 'run', {})).isError, 'a run of nothing succeeded');
    });
    await client('an unknown tool is a protocol error', async (c) => {
        const error = await call(c, 'no_such_tool').then(() => null, (e) => e);
        check(error?.code === -32602, `got ${error}`);
    });
    await client('a resource that is not there is a protocol error', async (c) => {
        const id = await open(c);
        for (const uri of [`workspace://${id}/files/none`, 'pool://none', 'nothing://at/all']) {
            const error = await c.readResource({uri}).then(() => null, (e) => e);
            // The later client tells the older code as the newer one.
            check(error?.code === (c.api === 'v1' ? -32002 : -32602), `${uri}: got ${error?.code} ${error}`);
        }
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('a run reports progress while it goes on', async (c) => {
        const id = await open(c);
        let reports = 0;
        const ended = later(good(c, 'run', {workspace_id: id, command: 'until [ -e go ]; do sleep 0.1; done; echo went'},
            {onprogress: () => ++reports}));
        await until('a report', () => reports > 0);
        await good(c, 'file_put', {workspace_id: id, path: 'go', text: ''});
        check(text(await ended).includes('went'), text(await ended));
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('a cancelled run is killed', async (c) => {
        const stop = new AbortController();
        const id = await open(c);
        const slow = later(call(c, 'run', {workspace_id: id, command: 'echo > begun; sleep 47'}, {signal: stop.signal}));
        await until('its begin', () => exists(c, id, 'begun'));
        stop.abort('enough');
        check(await slow.then(() => false, () => true), 'it was not cancelled');
        await until('its end', async () => text(await good(c, 'run', {workspace_id: id, command: countSleeps})).includes('left=0'));
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('neither two calls of a client nor two clients wait for each other', (one) => withClient(make, async (other) => {
        const id = await open(one);
        // Each ends only after all three have begun.
        const meet = (c, name) => later(good(c, 'run', {
            workspace_id: id, command: `echo > ${name}; until [ -e a ] && [ -e b ] && [ -e c ]; do sleep 0.1; done`, timeout_s: 50}));
        await Promise.all([meet(one, 'a'), meet(one, 'b'), meet(other, 'c')]);
        await good(one, 'workspace_close', {workspace_id: id});
    }));
}
