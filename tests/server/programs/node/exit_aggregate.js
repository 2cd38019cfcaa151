// Promise.any fails with all its errors.
Promise.any([Promise.reject(new Error('a')), Promise.reject(new RangeError('b'))]).catch((error) => {
  console.log(error.constructor.name, error.errors.map(String), error.message);
  throw error;
});
