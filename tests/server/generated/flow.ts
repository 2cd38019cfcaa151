// What the README does, and what the types must refuse, with the types that openapi-typescript makes of openapi.json.
import createClient from 'openapi-fetch';

import type {components, paths} from './hearth.js';

declare const process: {env: Record<string, string | undefined>};

type Event = components['schemas']['ExecutionEvent'];

function check(condition: unknown, what: unknown): asserts condition {
    if (!condition) throw new Error(JSON.stringify(what));
}

const client = createClient<paths>({baseUrl: process.env['HEARTH_URL'] ?? ''});

const claimed = await client.POST('/v1/workspaces', {body: {files: [{path: 'a.txt', text: 'hello'}]}});
check(claimed.data, claimed.error);
const workspace = claimed.data.id;
check(claimed.data.limits.pids > 0, claimed.data);
const where = {params: {path: {workspace}}};

const ran = await client.POST('/v1/workspaces/{workspace}/executions',
                              {...where, body: {command: 'cat a.txt; mkdir -p out; echo kept > out/note.txt'}});
check(typeof ran.data === 'object', ran);  // a stream would be text
check(ran.data.status === 'ok' && ran.data.stdout === 'hello' && ran.data.exitCode === 0, ran);

const note = await client.GET('/v1/workspaces/{workspace}/files/{path}',
                              {params: {path: {workspace, path: 'out/note.txt'}}, parseAs: 'text'});
check(note.data === 'kept\n', note);

const wrote = await client.PUT('/v1/workspaces/{workspace}/files/{path}',
                               {params: {path: {workspace, path: 'b.txt'}}, body: 'typed', bodySerializer: (body) => body,
                                headers: {'Content-Type': 'application/octet-stream'}});
check(wrote.data?.size === 5, wrote);

// The kind of an event decides what its data is.
function told(event: Event): string {
    switch (event.event) {
        case 'stdout': return event.data.text ?? '';
        case 'exit': return `${event.data.status} ${event.data.exitCode}`;
        default: return event.event;
    }
}
const stream = await client.POST('/v1/workspaces/{workspace}/executions',
                                 {...where, body: {command: 'echo out; exit 3'}, headers: {Accept: 'text/event-stream'}, parseAs: 'text'});
const said = String(stream.data).split('\n\n').filter((each) => each.includes('data: ')).map((each) => {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(each)?.[1] ?? '';
    return told({id: field('id'), event: field('event'), data: JSON.parse(field('data'))} as Event);
});
check(said.join('|') === 'started|out\n|failed 3', said);

const pool = await client.GET('/v1/pools/{pool}', {params: {path: {pool: 'shell'}}});
check(pool.data?.spec.template?.image === 'shell', pool);

const ended = await client.DELETE('/v1/workspaces/{workspace}', where);
check(ended.response.status === 204, ended);
const gone = await client.GET('/v1/workspaces/{workspace}', where);
check(gone.error?.status === 410 && gone.error.reason === 'deleted', gone);

// Compiles only while the types refuse these.
// @ts-expect-error a word that is none of the fields
const unknown: components['schemas']['ExecutionRequest'] = {command: 'true', timeOut: 3};
// @ts-expect-error a number for a text
const wrong: components['schemas']['ExecutionRequest'] = {command: 3};
// @ts-expect-error a status that there is not
const status: components['schemas']['Execution']['status'] = 'done';
void [unknown, wrong, status];
