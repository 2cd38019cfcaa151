// What clients are told of unasked: lists that are others, resources that have changed.
import {ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema} from '@modelcontextprotocol/sdk/types.js';

import {base, check, everyKind, good, headers, httpOf, modern, open, pause, sseOf, test, until, withClient} from './support.mjs';

const schemas = {
    'notifications/tools/list_changed': ToolListChangedNotificationSchema,
    'notifications/resources/list_changed': ResourceListChangedNotificationSchema,
    'notifications/resources/updated': ResourceUpdatedNotificationSchema,
};

/** What has come of a method so far. */
function listen(client, method) {
    const heard = [];
    client.setNotificationHandler(client.api === 'v1' ? schemas[method] : method, (told) => { heard.push(told.params ?? {}); });
    return heard;
}

/** Does it again until it was heard of: the stream of a session opens some time after connect(), and no client can tell when. */
const untilHeard = (heard, doIt) => until('a notification', async () => {
    await doIt();
    for (let i = 0; i < 10 && heard.length === 0; ++i) await pause(100);
    return heard.length > 0;
});

const send = (method, path, body) => fetch(base + path, {
    method, headers: {...headers, 'content-type': 'application/json'}, body: body && JSON.stringify(body)});
const pool = {apiVersion: 'hearth.dev/v1alpha1', kind: 'SandboxPool', metadata: {name: 'heard'},
    spec: {template: {image: 'shell'}, warm: {min: 0}}};

for (const [kind, make] of Object.entries(everyKind)) {
    const client = (sentence, body) => test(`mcp ${kind}: ${sentence}`, () => withClient(make, body));

    await client('hears that the tools are others when a pool comes or goes', async (c) => {
        const heard = listen(c, 'notifications/tools/list_changed');
        if (modern(kind)) await c.listen({toolsListChanged: true});
        await untilHeard(heard, async () => {
            await send('DELETE', '/v1/pools/heard');
            await send('POST', '/v1/pools', pool);
        });
        await until('its end', async () => (await send('DELETE', '/v1/pools/heard')).status === 404);
    });
    await client('hears that there are other resources when a workspace opens', async (c) => {
        const heard = listen(c, 'notifications/resources/list_changed');
        if (modern(kind)) await c.listen({resourcesListChanged: true});
        const opened = [];
        await untilHeard(heard, async () => opened.push(await open(c)));
        const uris = (await c.listResources()).resources.map((r) => r.uri);
        check(opened.every((id) => uris.includes(`workspace://${id}`)), uris.join());
        for (const id of opened) await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('hears of the log that it subscribed to when something has run, and of no other', async (c) => {
        const [mine, other] = [await open(c), await open(c)];
        const uri = `workspace://${mine}/logs`;
        const heard = listen(c, 'notifications/resources/updated');
        if (modern(kind)) {
            const subscription = await c.listen({resourceSubscriptions: [uri]});
            check(subscription.honoredFilter.resourceSubscriptions?.join() === uri, JSON.stringify(subscription.honoredFilter));
        } else {
            await c.subscribeResource({uri});
        }
        await untilHeard(heard, async () => {
            await good(c, 'run', {workspace_id: other, command: 'true'});
            await good(c, 'run', {workspace_id: mine, command: 'echo told'});
        });
        check(heard.every((told) => told.uri === uri), JSON.stringify(heard));
        check((await c.readResource({uri})).contents[0].text.includes('told'), 'the log does not have it');
        for (const id of [mine, other]) await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('hears of the file that it subscribed to when the API writes it and when code does', async (c) => {
        const id = await open(c);
        const uri = `workspace://${id}/files/heard.txt`;
        const heard = listen(c, 'notifications/resources/updated');
        if (modern(kind)) {
            const nonsense = `workspace://${id}/nonsense`;
            const subscription = await c.listen({resourceSubscriptions: [uri, nonsense]});
            check(subscription.honoredFilter.resourceSubscriptions?.join() === uri, JSON.stringify(subscription.honoredFilter));
        } else {
            await c.subscribeResource({uri});
        }
        let written = 0;
        await untilHeard(heard, () => fetch(`${base}/v1/workspaces/${id}/files/heard.txt`, {method: 'PUT', headers, body: `${++written}`}));
        await pause(1500);  // the notification of the last write may still be on its way
        heard.length = 0;
        await untilHeard(heard, () => good(c, 'run', {workspace_id: id, command: `echo ${++written} of code > heard.txt`}));
        check(heard.every((told) => told.uri === uri), JSON.stringify(heard));
        check((await c.readResource({uri})).contents[0].text.includes('of code'), 'the file does not have it');
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('is told of no other resources by a one shot run', async (c) => {
        const id = await open(c);
        const uri = `workspace://${id}/logs`;
        const [lists, updates] = ['notifications/resources/list_changed', 'notifications/resources/updated'].map((m) => listen(c, m));
        if (modern(kind)) {
            await c.listen({resourcesListChanged: true, resourceSubscriptions: [uri]});
        } else {
            await c.subscribeResource({uri});
        }
        const fence = async () => {
            updates.length = 0;
            await untilHeard(updates, () => good(c, 'run', {workspace_id: id, command: 'true'}));
        };
        await fence();
        await pause(1500);
        lists.length = 0;
        for (let i = 0; i < 3; ++i) await good(c, 'run', {command: 'true'});
        await fence();
        check(lists.length === 0, `${lists.length} times`);
        await good(c, 'workspace_close', {workspace_id: id});
    });
    await client('has the paths of files completed', async (c) => {
        const id = await open(c);
        for (const path of ['folder/apple.txt', 'folder/apricot.txt', 'folder/berry.txt']) {
            await good(c, 'file_put', {workspace_id: id, path, text: 'x'});
        }
        const complete = async (value) => (await c.complete({
            ref: {type: 'ref/resource', uri: 'workspace://{id}/files/{+path}'},
            argument: {name: 'path', value}, context: {arguments: {id}}})).completion.values.join();
        check(await complete('fo') === 'folder/', await complete('fo'));
        check(await complete('folder/ap') === 'folder/apple.txt,folder/apricot.txt', await complete('folder/ap'));
        await good(c, 'workspace_close', {workspace_id: id});
    });
}

for (const [kind, make] of Object.entries({http: httpOf('/compat/s3'), sse: sseOf('/compat/s3')})) {
    await test(`mcp ${kind}: an earlier system's endpoint declares no changes and tells of none`, () => withClient(make, async (c) => {
        check(!c.getServerCapabilities().tools?.listChanged && !c.getServerCapabilities().resources, JSON.stringify(c.getServerCapabilities()));
        let told = 0;
        c.fallbackNotificationHandler = async () => { ++told; };
        await pause(500);
        await send('POST', '/v1/pools', pool);
        const opened = await (await send('POST', '/v1/workspaces', {})).json();
        await send('DELETE', `/v1/workspaces/${opened.id}`);
        await pause(1500);
        check(told === 0, `${told} times`);
        await send('DELETE', '/v1/pools/heard');
        await until('its end', async () => (await send('DELETE', '/v1/pools/heard')).status === 404);
    }));
}
