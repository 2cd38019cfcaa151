// The frames of a stack are the program's.
// Also as a cell of a context.
function outer() {
  return inner();
}
function inner() {
  return new Error('here').stack.split('\n').slice(0, 3).map((line) => line.trim().replace(/\(.*\//, '('));
}
console.log(outer().slice(0, 3).map((line) => line.split(':')[0]));
