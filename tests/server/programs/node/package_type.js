// In a package of modules a .js file is one, although it parses as a script.
console.log(typeof require, this, typeof module);
