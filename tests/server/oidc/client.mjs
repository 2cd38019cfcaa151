// The official client with nothing but a client's name and secret: it finds the issuer of HEARTH_URL by itself, and prints what a command says.
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {ClientCredentialsProvider} from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const {HEARTH_URL, CLIENT, SECRET, ISSUER} = process.env;
const authProvider = new ClientCredentialsProvider({clientId: CLIENT, clientSecret: SECRET, scope: 'run', expectedIssuer: ISSUER});
const client = new Client({name: 'issued', version: '1'});
await client.connect(new StreamableHTTPClientTransport(new URL(`${HEARTH_URL}/mcp`), {authProvider}));
const answer = await client.callTool({name: 'run', arguments: {command: `echo hello ${CLIENT}`}});
process.stdout.write(answer.content[0].text);
await client.close();
