// Neither a script nor a module: the error is the script's.
console.log(await Promise.resolve(1));
const list = [1, 2;
