// The frames below the program: its stack down to the last one, and the parent module.
const frames = new Error().stack.split('\n').slice(1).map((line) => line.trim().split(/[ :(]/)[1]);
console.log(frames.length, frames.at(-1), module.parent, require.main === module, module.id);
