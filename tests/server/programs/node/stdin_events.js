// Standard input as a stream of chunks.
let text = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => { text += chunk; });
process.stdin.on('end', () => console.log(text.toUpperCase().trim()));
