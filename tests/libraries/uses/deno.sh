# TypeScript as it is, a server, its permissions, its tests.
cat >main.ts <<'TS'
const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => new Response(new URL(request.url).pathname));
const answer: string = await (await fetch(`http://127.0.0.1:${server.addr.port}/there`)).text();
console.log(answer);
await server.shutdown();
try {
    Deno.readTextFileSync("/etc/hostname");
} catch (e) {
    console.log(e instanceof Deno.errors.NotCapable);
}
TS
printf 'Deno.test("sum", () => { if (1 + 1 !== 2) throw new Error(); });\n' >sum_test.ts
deno run --quiet --allow-net=127.0.0.1 main.ts
NO_COLOR=1 deno test --quiet sum_test.ts | grep -oE '[0-9]+ passed'
