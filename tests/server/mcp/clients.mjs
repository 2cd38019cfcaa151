// The tests proper: each is one sentence, run against each official client that it names.
import {spawnSync} from 'node:child_process';
import {appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {Client as ClientV1} from '@modelcontextprotocol/sdk/client/index.js';
import {SSEClientTransport as SseV1} from '@modelcontextprotocol/sdk/client/sse.js';
import {StdioClientTransport as StdioV1} from '@modelcontextprotocol/sdk/client/stdio.js';
import {StreamableHTTPClientTransport as HttpV1} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {ToolListChangedNotificationSchema} from '@modelcontextprotocol/sdk/types.js';
import {Client as ClientV2, SSEClientTransport as SseV2, StreamableHTTPClientTransport as HttpV2} from '@modelcontextprotocol/client';
import {StdioClientTransport as StdioV2} from '@modelcontextprotocol/client/stdio';

const base = process.env.HEARTH_URL.replace(/\/$/, '');
const endpoint = new URL(base + '/mcp');
const sse = new URL(base + '/sse');
const token = process.env.HEARTH_TOKEN ?? '';
const bin = process.env.HEARTH_BIN ?? '';
const stage = process.env.HEARTH_TEST_STAGE ?? 'server';
// A program that is built with a sanitizer is told by these where its reports go.
const kept = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name === 'PATH' || name.endsWith('SAN_OPTIONS')));
const headers = token ? {Authorization: `Bearer ${token}`} : {};
const info = {name: 'hearth-tests', version: '1'};
const tools = ['pool_list', 'workspace_open', 'workspace_list', 'workspace_extend', 'workspace_close',
    'run', 'run_status', 'packages', 'file_put', 'file_get'];
const bytes = Buffer.from([0, 1, 2, 255]);

class Skip extends Error {}

function check(condition, what) {
    if (!condition) throw new Error(what);
}

const text = (result) => result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function call(client, name, args = {}, options = undefined) {
    const params = {name, arguments: args};
    return client.api === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

async function good(client, name, args) {
    const result = await call(client, name, args);
    check(!result.isError, `${name} failed: ${text(result)}`);
    return result;
}

async function open(client) {
    const id = text(await good(client, 'workspace_open')).split('\n')[0];
    check(/^ws_[0-9a-f]{32}$/.test(id), `no id in the first line: ${id}`);
    return id;
}

const http = {requestInit: {headers}};
const auto = {versionNegotiation: {mode: 'auto'}};
const pinned = {versionNegotiation: {mode: {pin: '2026-07-28'}}};
const modern = (kind) => /auto|pinned/.test(kind);
const overHttp = {
    'v1 http': () => [new ClientV1(info), new HttpV1(endpoint, http), 'v1'],
    'v2 http': () => [new ClientV2(info), new HttpV2(endpoint, http), 'v2'],
    'v2 http auto': () => [new ClientV2(info, auto), new HttpV2(endpoint, http), 'v2'],
    'v2 http pinned': () => [new ClientV2(info, pinned), new HttpV2(endpoint, http), 'v2'],
    'v1 sse': () => [new ClientV1(info), new SseV1(sse, http), 'v1'],
    'v2 sse': () => [new ClientV2(info), new SseV2(sse, http), 'v2'],
};
const stdio = (root) => ({
    command: bin,
    args: ['mcp', '--root', root],
    env: {...kept, HEARTH_URL: base, ...(token ? {HEARTH_TOKEN: token} : {})},
    stderr: 'ignore',
});
const overStdio = {
    'v1 stdio': (root) => [new ClientV1(info), new StdioV1(stdio(root)), 'v1'],
    'v2 stdio': (root) => [new ClientV2(info), new StdioV2(stdio(root)), 'v2'],
    'v2 stdio auto': (root) => [new ClientV2(info, auto), new StdioV2(stdio(root)), 'v2'],
    'v2 stdio pinned': (root) => [new ClientV2(info, pinned), new StdioV2(stdio(root)), 'v2'],
};

async function withClient(make, body) {
    const [client, transport, api] = make();
    client.api = api;
    client.wire = transport;
    await client.connect(transport);
    try {
        return await body(client);
    } finally {
        await client.close();
    }
}

let failed = 0;
async function test(name, body) {
    let verdict = 'pass';
    try {
        await body();
    } catch (error) {
        verdict = error instanceof Skip ? 'skip' : 'fail';
        if (verdict === 'fail') ++failed;
        console.log(`  ${error instanceof Skip ? error.message : error.stack}`);
    }
    console.log(`${verdict} ${name}`);
    if (process.env.HEARTH_TEST_RESULTS) {
        appendFileSync(process.env.HEARTH_TEST_RESULTS, `${verdict} ${stage} ${name}\n`);
    }
}

const plot = `import numpy as np
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.hist(np.random.default_rng(1).normal(size=1000), bins=30)
plt.savefig("plot.png")
print("saved")
`;

for (const [kind, make] of Object.entries(overHttp)) {
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
        if (!/^python:/m.test(text(await good(c, 'pool_list')))) throw new Skip('no pool "python"');
        const id = text(await good(c, 'workspace_open', {pool: 'python'})).split('\n')[0];
        await good(c, 'file_put', {workspace_id: id, path: 'plot.py', text: plot});
        await good(c, 'run', {workspace_id: id, command: 'python3 plot.py', timeout_s: 50});
        const image = (await good(c, 'file_get', {workspace_id: id, path: 'plot.png'})).content
            .find((part) => part.type === 'image');
        check(image?.mimeType === 'image/png', 'no image content');
        check(Buffer.from(image.data, 'base64').subarray(1, 4).toString() === 'PNG', 'no PNG signature');
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('code runs in a pool that has its language', async (c) => {
        if (!/^python:/m.test(text(await good(c, 'pool_list')))) throw new Skip('no pool "python"');
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
    await client('a bad argument is a result that names the allowed ones', async (c) => {
        const result = await call(c, 'run', {comand: 'true'});
        check(result.isError && /allowed: .*command/.test(text(result)), JSON.stringify(result));
        check((await call(c, 'run', {})).isError, 'a run of nothing succeeded');
    });
    await client('an unknown tool is a protocol error', async (c) => {
        const error = await call(c, 'no_such_tool').then(() => null, (e) => e);
        check(error?.code === -32602, `got ${error}`);
    });
    await client('resources are listed and read, and one that is not there is told by its URI', async (c) => {
        const id = await open(c);
        await good(c, 'run', {workspace_id: id, command: 'echo said; echo kept > f.txt'});
        const uris = (await c.listResources()).resources.map((r) => r.uri);
        check(uris.includes('pool://shell') && uris.includes(`workspace://${id}`), uris.join());
        check((await c.listResourceTemplates()).resourceTemplates.length === 4, 'templates are missing');
        const read = async (uri) => (await c.readResource({uri})).contents[0].text;
        check(JSON.parse(await read('pool://shell')).name === 'shell', 'not the pool');
        check((await read(`workspace://${id}/logs`)).includes('said'), 'the log lacks what was said');
        check((await read(`workspace://${id}/files/f.txt`)) === 'kept\n', 'another file');
        const error = await c.readResource({uri: `workspace://${id}/files/none`}).then(() => null, (e) => e);
        check(error?.code === (modern(kind) ? -32602 : -32002) || error?.code === -32602, `got ${error?.code} ${error}`);
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
    await client('a slow run reports progress', async (c) => {
        let reports = 0;
        const result = await call(c, 'run', {command: 'sleep 3'}, {onprogress: () => ++reports});
        check(!result.isError && reports >= 1, `${reports} reports; ${text(result)}`);
    });
    await client('a cancelled run is killed', async (c) => {
        const stop = new AbortController();
        const id = await open(c);
        const slow = call(c, 'run', {workspace_id: id, command: 'sleep 47; echo late > late'}, {signal: stop.signal});
        setTimeout(() => stop.abort('enough'), 1500);
        check(await slow.then(() => false, () => true), 'it was not cancelled');
        const count = 'n=0; for p in /proc/[0-9]*/cmdline; do tr "\\0" " " < $p 2>/dev/null | grep -q "^sleep 47" && n=$((n+1)); done; echo left=$n';
        let left = '';
        for (let i = 0; i < 30 && !left.includes('left=0'); ++i) {
            await pause(100);
            left = text(await good(c, 'run', {workspace_id: id, command: count}));
        }
        check(left.includes('left=0'), `still running: ${left}`);
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('a background run is followed with run_status', async (c) => {
        const id = await open(c);
        const started = text(await good(c, 'run', {workspace_id: id, command: 'sleep 2', background: true}));
        const run = /run_id (ex_[0-9a-f]{32})/.exec(started)?.[1];
        check(started.startsWith('running') && run, started);
        check(text(await good(c, 'run_status', {run_id: run, wait_s: 20})).startsWith('ok'), 'it did not end well');
        await good(c, 'workspace_close', {workspace_id: id});
    });
}

for (const kind of ['v1 http', 'v1 sse', 'v2 http pinned']) {
    await test(`mcp ${kind}: a client hears that the tools are others when a pool is declared`, () => withClient(overHttp[kind], async (c) => {
        const pool = {apiVersion: 'hearth.dev/v1alpha1', kind: 'SandboxPool', metadata: {name: 'heard'},
            spec: {template: {image: 'shell'}, warm: {min: 0}}};
        const send = (method, path, body) => fetch(base + path, {
            method, headers: {...headers, 'content-type': 'application/json'}, body: body && JSON.stringify(body)});
        let heard = 0;
        if (c.api === 'v1') {
            c.setNotificationHandler(ToolListChangedNotificationSchema, () => { ++heard; });
        } else {
            c.setNotificationHandler('notifications/tools/list_changed', () => { ++heard; });
            await c.listen({toolsListChanged: true});
        }
        await pause(300);  // the stream of a session opens behind connect()
        check((await send('POST', '/v1/pools', pool)).status === 201, 'the pool was not declared');
        for (let i = 0; i < 100 && heard === 0; ++i) await pause(100);
        await send('DELETE', '/v1/pools/heard');
        check(heard > 0, 'it heard nothing');
    }));
}

const seeds = {
    s0: ['sandbox_initialize', 'sandbox_exec', 'write_file_sandbox', 'copy_file', 'copy_project', 'copy_file_from_sandbox', 'sandbox_stop',
        'clean_workspace', 'get_container_logs'],
    s1: ['list_sandboxes', 'create_sandbox', 'install_packages_in_sandbox', 'check_packages_installation_status', 'execute_python_code',
        'execute_terminal_command', 'upload_file_to_sandbox'],
    s2: ['initialize_sandbox', 'execute_code', 'stop_sandbox'],
    s3: ['create_python_env', 'execute_python_code', 'install_package_in_env', 'check_package_status'],
};
for (const [seed, names] of Object.entries(seeds)) {
    for (const [kind, wire] of [['v1 sse', SseV1], ['v1 http', HttpV1]]) {
        const path = `${base}/compat/${seed}/${kind === 'v1 sse' ? 'sse' : 'mcp'}`;
        await test(`mcp ${kind}: a client of ${seed} finds its system's tools and no others`, () => withClient(
            () => [new ClientV1(info), new wire(new URL(path), http), 'v1'], async (c) => {
                const found = (await c.listTools()).tools.map((t) => t.name);
                check(found.sort().join() === [...names].sort().join(), found.join());
            }));
    }
}

await test('mcp v1 sse: a client of s3 works as its document says', () => withClient(
    () => [new ClientV1(info), new SseV1(new URL(base + '/compat/s3/sse'), http), 'v1'], async (c) => {
        const id = text(await good(c, 'create_python_env'));
        const out = JSON.parse(text(await good(c, 'execute_python_code', {container_id: id, code: 'print(6*7); open("a.csv", "w").write("1,2")'})));
        check(out.stdout === '42\n' && out.exit_code === 0 && out.file_links[0].name === 'a.csv', JSON.stringify(out));
        check(await (await fetch(out.file_links[0].url)).text() === '1,2', 'the link gives another file');
    }));

await test("mcp v1 stdio: a client of s0 copies a project of the user's disk, and a file back", async () => {
    if (!bin) throw new Skip('HEARTH_BIN is not set');
    const root = mkdtempSync(join(tmpdir(), 'hearth-mcp-'));
    try {
        mkdirSync(join(root, 'project/deep'), {recursive: true});
        writeFileSync(join(root, 'project/main.py'), 'open("out.txt", "w").write(open("deep/in.txt").read() * 2)');
        writeFileSync(join(root, 'project/deep/in.txt'), 'ab');
        const program = stdio(root);
        program.args.push('--compat', 's0');
        await withClient(() => [new ClientV1(info), new StdioV1(program), 'v1'], async (c) => {
            const said = async (name, args) => JSON.parse(text(await good(c, name, args)));
            const {container_id, workspace_id} = await said('sandbox_initialize', {});
            const where = {container_id, workspace_id};
            const copied = await said('copy_project', {...where, local_src_dir: join(root, 'project'), dest_dir: 'p'});
            check(copied.success, JSON.stringify(copied));
            const ran = await said('sandbox_exec', {...where, commands: ['cd p && python3 main.py && cat out.txt']});
            check(ran.results[0].stdout === 'abab', JSON.stringify(ran));
            const back = await said('copy_file_from_sandbox', {...where, container_src_path: 'p/out.txt', local_dest_path: 'output/o.txt'});
            check(back.success && readFileSync(join(root, 'output/o.txt'), 'utf8') === 'abab', JSON.stringify(back));
            const outside = await call(c, 'copy_project', {...where, local_src_dir: '/etc'});
            check(outside.isError, 'it read outside of its root');
            await said('sandbox_stop', {container_id});
        });
    } finally {
        rmSync(root, {recursive: true, force: true});
    }
});

await test('mcp: two clients work at once', () => withClient(overHttp['v1 http'], (one) =>
    withClient(overHttp['v2 http'], async (two) => {
        const began = Date.now();
        await Promise.all([one, two].map((c) => good(c, 'run', {command: 'sleep 3'})));
        check(Date.now() - began < 5_500, 'one waited for the other');
    })));

await test('mcp: a session lives on after a restart of the server', () => withClient(overHttp['v1 http'], async (c) => {
    if (!process.env.HEARTH_RESTART) throw new Skip('HEARTH_RESTART is not set');
    const before = c.wire.sessionId;
    check(spawnSync('sh', ['-c', process.env.HEARTH_RESTART], {stdio: 'ignore'}).status === 0, 'the restart failed');
    for (let i = 0; i < 100 && !(await c.listTools().then(() => true, () => false)); ++i) await pause(100);
    check((await c.listTools()).tools.length === tools.length, 'no tools after the restart');
    check(c.wire.sessionId === before, 'the session changed');
}));

await test('mcp: a deleted session is not found', () => withClient(overHttp['v1 http'], async (c) => {
    const id = c.wire.sessionId;
    await c.wire.terminateSession();
    const answer = await fetch(endpoint, {
        method: 'POST',
        headers: {...headers, 'content-type': 'application/json', 'mcp-session-id': id},
        body: JSON.stringify({jsonrpc: '2.0', id: 1, method: 'ping'}),
    });
    check(answer.status === 404, `status ${answer.status}`);
}));

for (const [kind, make] of Object.entries(overStdio)) {
    await test(`mcp ${kind}: runs, and moves files between the user's disk and a workspace`, async () => {
        if (!bin) throw new Skip('HEARTH_BIN is not set');
        const root = mkdtempSync(join(tmpdir(), 'hearth-mcp-'));
        const outside = mkdtempSync(join(tmpdir(), 'hearth-mcp-'));
        try {
            await withClient(() => make(root), async (c) => {
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
                const slow = call(c, 'run', {command: 'sleep 2'});
                check(text(await good(c, 'run', {command: 'echo $((6*7))'})).includes('42'), 'no output');
                check(!(await slow).isError, 'the slow run failed');
                await good(c, 'workspace_close', {workspace_id: id});
            });
        } finally {
            for (const folder of [root, outside]) rmSync(folder, {recursive: true, force: true});
        }
    });
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

process.exit(failed === 0 ? 0 : 1);
