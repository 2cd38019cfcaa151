// An uncaught error in a module.
const value = await Promise.resolve(null);
export const name = value.name;
