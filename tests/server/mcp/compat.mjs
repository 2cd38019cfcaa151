// A server that was started with --compat s3: its clients need no other address than the one in their documents.
import {base, check, good, headers, httpOf, sseOf, test, text, tools, withClient} from './support.mjs';
import {seeds} from './seedtools.mjs';

for (const [kind, make] of [['v1 sse', sseOf('')], ['v1 http', httpOf('')]]) {
    await test(`mcp ${kind}: with --compat s3 the root is that system's, and its tools work there`, () => withClient(make, async (c) => {
        check((await c.listTools()).tools.map((t) => t.name).join() === seeds.s3.join(), 'other tools');
        const id = text(await good(c, 'create_python_env'));
        const ran = JSON.parse(text(await good(c, 'execute_python_code', {container_id: id, code: 'print(6*7)'})));
        check(ran.stdout === '42\n', JSON.stringify(ran));
        check((await fetch(`${base}/v1/workspaces/${id}`, {method: 'DELETE', headers})).ok, 'its id is no workspace of the server');
    }));
}
for (const [kind, make] of [['v1 sse', sseOf('/hearth')], ['v1 http', httpOf('/hearth')]]) {
    await test(`mcp ${kind}: with --compat s3 Hearth's own ten tools are at /hearth`, () => withClient(make, async (c) => {
        check((await c.listTools()).tools.map((t) => t.name).join() === tools.join(), 'other tools');
        check(text(await good(c, 'run', {command: 'echo $((6*7))'})).includes('42'), 'no output');
    }));
}
