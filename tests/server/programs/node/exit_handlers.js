// uncaughtException and unhandledRejection take what nobody caught; the program goes on.
process.on('unhandledRejection', (reason) => {
  console.log('rejected', reason);
  setTimeout(() => { throw new Error('e'); });
});
process.on('uncaughtException', (error, origin) => {
  console.log('caught', error.message, origin);
  setTimeout(() => console.log('goes on'));
});
Promise.reject('r');
