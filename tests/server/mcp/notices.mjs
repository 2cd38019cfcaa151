// What clients are told of unasked: lists that are others, resources that have changed.
import {ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema} from '@modelcontextprotocol/sdk/types.js';

import {base, check, everyKind, good, headers, modern, open, pause, test, until, withClient} from './support.mjs';

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
}
