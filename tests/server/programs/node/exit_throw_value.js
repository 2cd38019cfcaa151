// A thrown value that is no error.
console.log('before');
throw { code: 42, nested: { list: [1, 2] } };
