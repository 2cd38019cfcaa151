// Standard input without content ends at once, and no stream is a terminal.
console.log(process.stdin.isTTY, process.stdout.isTTY, process.stdout.columns);
process.stdin.on('data', () => console.log('never')).on('end', () => console.log('end'));
