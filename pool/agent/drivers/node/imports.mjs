// Hooks for the imports of one file (run.js): what it names is looked for in the directory where the code runs, and it is
// a module if run.js says so.

let file;
let here;
let asModule;

export function initialize(data) {
  ({ file, here, asModule } = data);
}

export async function resolve(specifier, context, next) {
  if (context.parentURL !== file) return next(specifier, context);
  try {
    return await next(specifier, { ...context, parentURL: here });
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return next(specifier, context);
  }
}

export async function load(url, context, next) {
  return next(url, asModule && url === file ? { ...context, format: 'module' } : context);
}
