// A large output is whole, whatever the status.
process.stdout.write('x'.repeat(79).concat('\n').repeat(5000));
process.stderr.write('all written\n');
process.exitCode = 4;
