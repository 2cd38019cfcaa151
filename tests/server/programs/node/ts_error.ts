// An uncaught error in TypeScript ends with 1.
abstract class Base<T> { abstract get(): T; fail(): never { throw new RangeError(`no ${this.get()}`); } }
class Text extends Base<string> { get() { return 'text'; } }
console.log('before');
new Text().fail();
