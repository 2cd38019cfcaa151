// Buffers: encodings, slices, numbers, comparisons.
// Also as a cell of a context.
const b = Buffer.from('héllo €');
console.log(b.length, b.toString('hex'), b.toString('base64url'), Buffer.from('00ff', 'hex'), b.subarray(1, 3).toString(), b.indexOf('€'));
const n = Buffer.alloc(12);
n.writeUInt16BE(65535, 0);
n.writeDoubleLE(0.1, 2);
console.log(n, n.readInt16BE(0), Buffer.compare(Buffer.from('a'), Buffer.from('b')), Buffer.concat([b, n]).length, Buffer.from([256, -1, '3']));
try {
  n.readUInt32BE(10);
} catch (error) {
  console.log(error.code, error.message);
}
