// TextDecoder and TextEncoder, URL and query strings.
// Also as a cell of a context.
console.log(new TextDecoder('utf-16le').decode(new Uint8Array([0x3d, 0xd8, 0, 0xde])), new TextDecoder().decode(new Uint8Array([0xff, 0x41])), new TextEncoder().encode('€'));
const url = new URL('../c?q=é x&q=2#f', 'http://user:p@example.org:8080/a/b/');
console.log(url.href, url.searchParams.getAll('q'), new URLSearchParams({ a: '1 2', b: 'ü' }).toString(), encodeURIComponent("é'&"), escape('é'));
try {
  new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff]));
} catch (error) {
  console.log(error.name, error.code);
}
new URL('no url');
