// A rejected promise that nobody handles ends the program.
setTimeout(() => console.log('never'), 50);
Promise.reject(new TypeError('nobody handles this'));
