// Each official client over HTTP, once: it opens a workspace of HEARTH_POOL, runs a command there, and closes it.
import {check, failed, good, open, overHttp, test, text, withClient} from './support.mjs';

const pool = process.env.HEARTH_POOL;

for (const [kind, make] of Object.entries(overHttp)) {
    await test(`mcp ${kind}: a claimed workspace runs a command`, () => withClient(make, async (c) => {
        const id = await open(c, {pool});
        const said = text(await good(c, 'run', {workspace_id: id, command: 'echo $((6*7))'}));
        check(said.includes('42'), said);
        await good(c, 'workspace_close', {workspace_id: id});
    }));
}
process.exit(failed() ? 1 : 0);
