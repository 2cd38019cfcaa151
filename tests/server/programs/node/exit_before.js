// beforeExit may start new work; exit comes last.
let rounds = 0;
process.on('beforeExit', () => {
  if (++rounds < 3) setTimeout(() => console.log('round', rounds), 1);
});
process.on('exit', () => console.log('exit after', rounds));
