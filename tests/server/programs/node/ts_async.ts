// TypeScript: async functions, decorators of today, generators, overloads, tuples.
type Result<T> = { ok: true; value: T } | { ok: false; error: Error };
async function attempt<T>(work: () => Promise<T>): Promise<Result<T>> {
  try { return { ok: true, value: await work() }; } catch (error) { return { ok: false, error: error as Error }; }
}
function pad(text: string): string;
function pad(text: number): string;
function pad(text: any): string { return String(text).padStart(4, '.'); }
(async () => {
  console.log(await attempt(async () => 42), (await attempt(async () => { throw new Error('no'); })).ok, pad(7), pad('ab'));
  process.exitCode = 2;
})();
