// An uncaught error: the line, its caret, the stack, status 1.
function deep(value) {
  return value.missing.name;
}
console.log('before');
deep({});
