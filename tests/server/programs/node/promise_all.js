// all, allSettled, race and an async generator.
async function* count(n) {
  for (let i = 0; i < n; i++) yield i;
}
(async () => {
  console.log(await Promise.all([1, Promise.resolve(2), (async () => 3)()]));
  console.log(await Promise.allSettled([Promise.reject(new Error('x')).catch((e) => e.message), Promise.reject(4)]));
  console.log(await Promise.race([new Promise((r) => setTimeout(r, 50, 'slow')), 'fast']));
  for await (const i of count(3)) console.log(i);
})();
