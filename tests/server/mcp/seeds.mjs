// Clients of the four earlier systems, over each transport, beside Hearth's own tools.
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

import {call, check, good, httpOf, sseOf, stdioOf, test, text, withClient, withFolder} from './support.mjs';
import {seeds} from './seedtools.mjs';

const said = async (client, name, args) => JSON.parse(text(await good(client, name, args)));

async function listsIts(client, seed) {
    const found = (await client.listTools()).tools.map((t) => t.name);
    check(found.sort().join() === [...seeds[seed]].sort().join(), found.join());
}

/** One call that its documents show, and what they say comes of it. */
const firstCall = {
    s0: async (c) => {
        const made = await said(c, 'sandbox_initialize', {});
        check(made.success && made.container_id && made.workspace_id && made.mode === 'persistent', JSON.stringify(made));
        await said(c, 'sandbox_stop', {container_id: made.container_id});
    },
    s1: async (c) => {
        const made = await said(c, 'create_sandbox', {});
        check(made.sandbox_id && made.status === 'active', JSON.stringify(made));
        const ran = await said(c, 'execute_python_code', {sandbox_id: made.sandbox_id, code: 'print(6*7)'});
        check(ran.stdout === '42\n' && ran.exit_code === 0, JSON.stringify(ran));
    },
    s2: async (c) => {
        await said(c, 'initialize_sandbox', {image: 'alpine:latest'});
        const ran = await said(c, 'execute_code', {code: 'print(6*7)', language: 'python'});
        check(ran.status === 'success' && ran.output === '42\n', JSON.stringify(ran));
        await said(c, 'stop_sandbox', {});
    },
    s3: async (c) => {
        const id = text(await good(c, 'create_python_env'));
        const ran = await said(c, 'execute_python_code', {container_id: id, code: 'print(6*7); open("a.csv", "w").write("1,2")'});
        check(ran.stdout === '42\n' && ran.exit_code === 0 && ran.file_links[0].name === 'a.csv', JSON.stringify(ran));
        check(await (await fetch(ran.file_links[0].url)).text() === '1,2', 'the link gives another file');
    },
};

for (const seed of Object.keys(seeds)) {
    const kinds = {'v1 sse': sseOf(`/compat/${seed}`), 'v1 http': httpOf(`/compat/${seed}`), 'v1 stdio': (root) => stdioOf(seed, root)()};
    for (const [kind, make] of Object.entries(kinds)) {
        await test(`mcp ${kind}: a client of ${seed} finds its system's tools and no others, and they work`, () => withClient(make, async (c) => {
            await listsIts(c, seed);
            await firstCall[seed](c);
        }));
    }
}

await test("mcp v1 stdio: a client of s0 copies a project of the user's disk, and a file back", () => withFolder(async (root) => {
    mkdirSync(join(root, 'project/deep'), {recursive: true});
    writeFileSync(join(root, 'project/main.py'), 'open("out.txt", "w").write(open("deep/in.txt").read() * 2)');
    writeFileSync(join(root, 'project/deep/in.txt'), 'ab');
    await withClient(stdioOf('s0', root), async (c) => {
        const {container_id, workspace_id} = await said(c, 'sandbox_initialize', {});
        const where = {container_id, workspace_id};
        const copied = await said(c, 'copy_project', {...where, local_src_dir: join(root, 'project'), dest_dir: 'p'});
        check(copied.success, JSON.stringify(copied));
        const ran = await said(c, 'sandbox_exec', {...where, commands: ['cd p && python3 main.py && cat out.txt']});
        check(ran.results[0].stdout === 'abab', JSON.stringify(ran));
        const back = await said(c, 'copy_file_from_sandbox', {...where, container_src_path: 'p/out.txt', local_dest_path: 'output/o.txt'});
        check(back.success && readFileSync(join(root, 'output/o.txt'), 'utf8') === 'abab', JSON.stringify(back));
        const outside = await call(c, 'copy_project', {...where, local_src_dir: '/etc'});
        check(outside.isError, 'it read outside of its root');
        await said(c, 'sandbox_stop', {container_id});
    });
}));

// As its README has it, letter by letter.
const histogram = `
import numpy as np
import matplotlib.pyplot as plt

# 生成随机数据
data = np.random.randn(1000)
print(f"数据均值: {data.mean():.4f}")
print(f"数据标准差: {data.std():.4f}")

# 保存直方图
plt.figure(figsize=(8, 6))
plt.hist(data, bins=30)
plt.title('正态分布直方图')
plt.savefig('histogram.png')
print("已保存直方图")
`;

await test("mcp v1 stdio: the README's example of s0 leaves its picture on the user's disk, with the arguments that it has", () => withFolder((root) =>
    withClient(stdioOf('s0', root), async (c) => {
        const {container_id, workspace_id} = await said(c, 'sandbox_initialize', {});
        const where = {container_id, workspace_id};
        await said(c, 'write_file_sandbox', {...where, file_name: 'analysis.py', file_contents: histogram});
        await said(c, 'write_file_sandbox', {...where, file_name: 'requirements.txt', file_contents: 'numpy\nmatplotlib\n'});
        const result = await said(c, 'sandbox_exec', {...where, commands: ['python analysis.py']});
        check(result.results[0].stdout.endsWith('已保存直方图\n'), JSON.stringify(result));
        const back = await said(c, 'copy_file_from_sandbox', {
            ...where, container_src_path: 'histogram.png', local_dest_path: './output/histogram.png'});
        const saved = readFileSync(join(root, 'output/histogram.png'));
        check(back.success && back.file_size === saved.length, JSON.stringify(back));
        check(saved.subarray(1, 4).toString() === 'PNG', 'no PNG signature');
        check((await said(c, 'clean_workspace', where)).success, 'not cleaned');
    })));

await test('mcp v1 stdio: a bridge without a root refuses the paths of a client of s0, and says how to share a folder', () =>
    withClient(stdioOf('s0'), async (c) => {
        const {container_id, workspace_id} = await said(c, 'sandbox_initialize', {});
        const refused = await call(c, 'copy_project', {container_id, workspace_id, local_src_dir: '/etc'});
        check(refused.isError && /--root/.test(text(refused)), text(refused));
        await said(c, 'sandbox_stop', {container_id});
    }));
