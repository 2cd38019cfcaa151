// A stack that is too deep is a RangeError that can be caught.
// Also as a cell of a context.
function down(n) {
  return down(n + 1) + 1;
}
try {
  down(0);
} catch (error) {
  console.log(error.name, error.message);
}
