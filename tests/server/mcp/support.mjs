// What every module of these tests stands on: the ten kinds of connection, a call and what came of it, and the result lines.
import {appendFileSync, mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {Client as ClientV1} from '@modelcontextprotocol/sdk/client/index.js';
import {SSEClientTransport as SseV1} from '@modelcontextprotocol/sdk/client/sse.js';
import {StdioClientTransport as StdioV1} from '@modelcontextprotocol/sdk/client/stdio.js';
import {StreamableHTTPClientTransport as HttpV1} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {Client as ClientV2, SSEClientTransport as SseV2, StreamableHTTPClientTransport as HttpV2} from '@modelcontextprotocol/client';
import {StdioClientTransport as StdioV2} from '@modelcontextprotocol/client/stdio';

export const base = process.env.HEARTH_URL.replace(/\/$/, '');
export const bin = process.env.HEARTH_BIN ?? '';
const token = process.env.HEARTH_TOKEN ?? '';
const stage = process.env.HEARTH_TEST_STAGE ?? 'server';
// A program that is built with a sanitizer is told by these where its reports go.
export const kept = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name === 'PATH' || name.endsWith('SAN_OPTIONS')));
export const headers = token ? {Authorization: `Bearer ${token}`} : {};
export const info = {name: 'hearth-tests', version: '1'};
export const tools = ['pool_list', 'workspace_open', 'workspace_list', 'workspace_extend', 'workspace_close',
    'run', 'run_status', 'packages', 'file_put', 'file_get'];

export class Skip extends Error {}

export function check(condition, what) {
    if (!condition) throw new Error(what);
}

export const text = (result) => result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Looks again and again, and fails after two minutes, which no machine is too slow for. */
export async function until(what, condition) {
    for (let i = 0; i < 1200; ++i) {
        const found = await condition();
        if (found) return found;
        await pause(100);
    }
    throw new Error(`it never came: ${what}`);
}

/** A promise that is awaited only later, or not at all where something failed before. */
export function later(promise) {
    promise.catch(() => {});
    return promise;
}

export async function call(client, name, args = {}, options = undefined) {
    const params = {name, arguments: args};
    return client.api === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

export async function good(client, name, args, options) {
    const result = await call(client, name, args, options);
    check(!result.isError, `${name} failed: ${text(result)}`);
    return result;
}

export async function open(client, args) {
    const id = text(await good(client, 'workspace_open', args)).split('\n')[0];
    check(/^ws_[0-9a-f]{32}$/.test(id), `no id in the first line: ${id}`);
    return id;
}

/** Whether a file is there yet. */
export const exists = async (client, id, path) => !(await call(client, 'file_get', {workspace_id: id, path})).isError;

const http = {requestInit: {headers}};
const auto = {versionNegotiation: {mode: 'auto'}};
const pinned = {versionNegotiation: {mode: {pin: '2026-07-28'}}};

/** Whether it speaks the era without sessions. */
export const modern = (kind) => /auto|pinned/.test(kind);

/** Clients of v1 of an endpoint such as "/compat/s3". */
export const httpOf = (prefix) => () => [new ClientV1(info), new HttpV1(new URL(`${base}${prefix}/mcp`), http), 'v1'];
export const sseOf = (prefix) => () => [new ClientV1(info), new SseV1(new URL(`${base}${prefix}/sse`), http), 'v1'];

const endpoint = new URL(base + '/mcp');
const sse = new URL(base + '/sse');
export const overHttp = {
    'v1 http': httpOf(''),
    'v2 http': () => [new ClientV2(info), new HttpV2(endpoint, http), 'v2'],
    'v2 http auto': () => [new ClientV2(info, auto), new HttpV2(endpoint, http), 'v2'],
    'v2 http pinned': () => [new ClientV2(info, pinned), new HttpV2(endpoint, http), 'v2'],
    'v1 sse': sseOf(''),
    'v2 sse': () => [new ClientV2(info), new SseV2(sse, http), 'v2'],
};

const stdio = (root, seed) => {
    if (!bin) throw new Skip('HEARTH_BIN is not set');
    return {
        command: bin,
        args: ['mcp', ...(root ? ['--root', root] : []), ...(seed ? ['--compat', seed] : [])],
        env: {...kept, HEARTH_URL: base, ...(token ? {HEARTH_TOKEN: token} : {})},
        stderr: 'ignore',
    };
};
export const overStdio = {
    'v1 stdio': (root) => [new ClientV1(info), new StdioV1(stdio(root)), 'v1'],
    'v2 stdio': (root) => [new ClientV2(info), new StdioV2(stdio(root)), 'v2'],
    'v2 stdio auto': (root) => [new ClientV2(info, auto), new StdioV2(stdio(root)), 'v2'],
    'v2 stdio pinned': (root) => [new ClientV2(info, pinned), new StdioV2(stdio(root)), 'v2'],
};
export const everyKind = {...overHttp, ...overStdio};

/** A client of v1 of a seed's tools, beside which the bridge reaches the files beneath `root`. */
export const stdioOf = (seed, root) => () => [new ClientV1(info), new StdioV1(stdio(root, seed)), 'v1'];

export async function connect(make) {
    const [client, transport, api] = make();
    client.api = api;
    client.wire = transport;
    await client.connect(transport);
    return client;
}

export async function withClient(make, body) {
    const client = await connect(make);
    try {
        return await body(client);
    } finally {
        await client.close();
    }
}

export async function withFolder(body) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-mcp-'));
    try {
        return await body(folder);
    } finally {
        rmSync(folder, {recursive: true, force: true});
    }
}

let failures = 0;

/** One result line. What it throws is the verdict; nothing is thrown on. */
export async function test(name, body) {
    let verdict = 'pass';
    try {
        await body();
    } catch (error) {
        verdict = error instanceof Skip ? 'skip' : 'fail';
        if (verdict === 'fail') ++failures;
        console.log(`  ${error instanceof Skip ? error.message : error.stack}`);
    }
    console.log(`${verdict} ${name}`);
    if (process.env.HEARTH_TEST_RESULTS) {
        appendFileSync(process.env.HEARTH_TEST_RESULTS, `${verdict} ${stage} ${name}\n`);
    }
}

export const failed = () => failures > 0;
