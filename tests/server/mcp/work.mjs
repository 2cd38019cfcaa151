// What the tools give, by each kind of connection.
import {call, check, everyKind, good, open, Skip, test, text, until, withClient} from './support.mjs';

const plot = `import numpy as np
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.hist(np.random.default_rng(1).normal(size=1000), bins=30)
plt.savefig("plot.png")
print("saved")
`;

async function needPython(client) {
    if (!/^python:/m.test(text(await good(client, 'pool_list')))) throw new Skip('no pool "python"');
}

for (const [kind, make] of Object.entries(everyKind)) {
    const client = (sentence, body) => test(`mcp ${kind}: ${sentence}`, () => withClient(make, body));

    await client('an image that a run made is shown and other files are linked', async (c) => {
        const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M/wHwADAQEA8OUKiAAAAABJRU5ErkJggg==';
        const made = await good(c, 'run', {command: `echo ${png} | base64 -d > p.png; echo 1,2 > t.csv`});
        const image = made.content.find((part) => part.type === 'image');
        check(image?.mimeType === 'image/png' && image.data === png, 'no image content');
        const link = /t\.csv \(4 bytes, text\/csv\) (http\S+)/.exec(made.content.map((part) => part.text ?? '').join('\n'));
        check(link, 'no link');
        check(await (await fetch(link[1])).text() === '1,2\n', 'the link gives another file');
        const none = await good(c, 'run', {command: 'echo 1 > x', collect: []});
        check(!text(none).includes('files made'), text(none));
    });
    await client('a plot made in a workspace comes back as a picture', async (c) => {
        await needPython(c);
        const id = await open(c, {pool: 'python'});
        await good(c, 'file_put', {workspace_id: id, path: 'plot.py', text: plot});
        await good(c, 'run', {workspace_id: id, command: 'python3 plot.py', timeout_s: 50});
        const image = (await good(c, 'file_get', {workspace_id: id, path: 'plot.png'})).content
            .find((part) => part.type === 'image');
        check(image?.mimeType === 'image/png', 'no image content');
        check(Buffer.from(image.data, 'base64').subarray(1, 4).toString() === 'PNG', 'no PNG signature');
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('code runs in a pool that has its language', async (c) => {
        await needPython(c);
        const out = text(await good(c, 'run', {code: 'print(6*7)', language: 'python'}));
        check(out.startsWith('ok, exit 0') && out.includes('42'), out);
    });
    await client('files stay in a workspace until it is closed', async (c) => {
        const id = await open(c);
        await good(c, 'file_put', {workspace_id: id, path: 'note.txt', text: 'gr\u00fc\u00dfe\n'});
        const got = text(await good(c, 'file_get', {workspace_id: id, path: 'note.txt'}));
        check(got === 'gr\u00fc\u00dfe\n', `text is ${JSON.stringify(got)}`);
        check(text(await good(c, 'file_get', {workspace_id: id, path: '.'})).includes('note.txt'), 'not listed');
        await good(c, 'workspace_close', {workspace_id: id});
        await good(c, 'workspace_close', {workspace_id: id});
        check((await call(c, 'file_get', {workspace_id: id, path: '.'})).isError, 'read a closed workspace');
    });
    await client('who names an unknown thing is told the tool to use next', async (c) => {
        const id = await open(c);
        const unknown = '0'.repeat(32);
        for (const [tool, given, step] of [
            ['file_get', {workspace_id: `ws_${unknown}`, path: '.'}, 'workspace_list shows'],
            ['file_get', {workspace_id: id, path: 'none'}, 'file_get with path'],
            ['run_status', {run_id: `ex_${unknown}`}, 'Take the run_id'],
        ]) {
            const refused = await call(c, tool, given);
            check(refused.isError && text(refused).includes(step), text(refused));
        }
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('resources are listed and read', async (c) => {
        const id = await open(c);
        await good(c, 'run', {workspace_id: id, command: 'echo said; echo kept > f.txt'});
        const uris = (await c.listResources()).resources.map((r) => r.uri);
        check(uris.includes('pool://shell') && uris.includes(`workspace://${id}`), uris.join());
        check((await c.listResourceTemplates()).resourceTemplates.length === 4, 'templates are missing');
        const read = async (uri) => (await c.readResource({uri})).contents[0].text;
        check(JSON.parse(await read('pool://shell')).name === 'shell', 'not the pool');
        check((await read(`workspace://${id}/logs`)).includes('said'), 'the log lacks what was said');
        check((await read(`workspace://${id}/files/f.txt`)) === 'kept\n', 'another file');
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('the guide comes in two languages, and arguments are completed', async (c) => {
        check((await c.listPrompts()).prompts.map((p) => p.name).join() === 'sandbox_guide', 'another prompt');
        const guide = async (args) => (await c.getPrompt({name: 'sandbox_guide', arguments: args})).messages[0].content.text;
        check((await guide({})).includes('workspace_open') && /沙箱/.test(await guide({language: 'zh'})), 'no guide');
        const done = await c.complete({ref: {type: 'ref/prompt', name: 'sandbox_guide'}, argument: {name: 'language', value: 'z'}});
        check(done.completion.values.join() === 'zh', JSON.stringify(done));
        const pools = await c.complete({ref: {type: 'ref/resource', uri: 'pool://{name}'}, argument: {name: 'name', value: 'sh'}});
        check(pools.completion.values.join() === 'shell', JSON.stringify(pools));
    });
    await client('a background run is followed with run_status', async (c) => {
        const id = await open(c);
        const started = text(await good(c, 'run', {
            workspace_id: id, command: 'until [ -e go ]; do sleep 0.1; done', background: true}));
        const run = /run_id (ex_[0-9a-f]{32})/.exec(started)?.[1];
        check(started.startsWith('running') && run, started);
        check(text(await good(c, 'run_status', {run_id: run})).startsWith('running'), 'it ended by itself');
        await good(c, 'file_put', {workspace_id: id, path: 'go', text: ''});
        await until('its end', async () => text(await good(c, 'run_status', {run_id: run, wait_s: 20})).startsWith('ok'));
        await good(c, 'workspace_close', {workspace_id: id});
    });
}
