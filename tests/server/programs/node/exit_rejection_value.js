// A rejection with a value that is no error has a message of its own.
Promise.reject('just a text');
