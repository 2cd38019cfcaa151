// An OpenID Connect issuer of others (oidc-provider), for tests. Prints its port, then serves until it is ended.
// Clients: the names in ISSUER_CLIENTS, each with the secret "secret-NAME" and the claims of ISSUER_CLAIMS[NAME].
// A line "rotate" on standard input gives it new keys, which the tokens of then are signed with.
import {createServer} from 'node:http'
import {generateKeyPairSync, randomUUID} from 'node:crypto'
import {createInterface} from 'node:readline'
import Provider from 'oidc-provider'

console.info = console.warn = () => {}  // it warns that it is none for production

const claims = JSON.parse(process.env.ISSUER_CLAIMS ?? '{}')
const algorithm = process.env.ISSUER_ALGORITHM ?? 'RS256'

function newKey() {
  const pair = algorithm === 'ES256' ? generateKeyPairSync('ec', {namedCurve: 'P-256'}) : generateKeyPairSync('rsa', {modulusLength: 2048})
  return {...pair.privateKey.export({format: 'jwk'}), use: 'sig', alg: algorithm, kid: randomUUID()}
}

function provider(port) {
  return new Provider(`http://127.0.0.1:${port}`, {
    jwks: {keys: [newKey()]},
    clients: Object.keys(claims).map(name => ({
      client_id: name, client_secret: `secret-${name}`, grant_types: ['client_credentials'], response_types: [], redirect_uris: [],
      id_token_signed_response_alg: algorithm,
    })),
    extraTokenClaims: (ctx, token) => claims[token.clientId],
    features: {
      devInteractions: {enabled: false},
      clientCredentials: {enabled: true},
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (ctx, resource) => ({
          scope: 'run', audience: resource.replace('urn:', ''), accessTokenTTL: Number(process.env.ISSUER_SECONDS ?? 600),
          accessTokenFormat: 'jwt', jwt: {sign: {alg: algorithm}},
        }),
      },
    },
  })
}

let current
const server = createServer((request, response) => current.callback()(request, response))
server.listen(Number(process.env.ISSUER_PORT ?? 0), '127.0.0.1', () => {
  current = provider(server.address().port)
  console.log(server.address().port)
})
createInterface({input: process.stdin}).on('line', line => {
  if (line === 'rotate') current = provider(server.address().port)
  console.log('done')
}).on('close', () => process.exit(0))
