// A syntax error is shown with its line, and nothing runs.
console.log('never');
const list = [1, 2;
