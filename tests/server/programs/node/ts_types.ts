// TypeScript: interfaces, generics, enums, parameter properties, a namespace.
interface Shape { area(): number; name?: string }
enum Color { Red, Green = 5, Blue }
const enum Flag { A = 1 << 2 }
class Square implements Shape {
  constructor(private readonly side: number, public name: string = 'square') {}
  area(): number { return this.side ** 2; }
}
namespace Geometry { export const total = <T extends Shape>(...shapes: T[]): number => shapes.reduce((sum, s) => sum + s.area(), 0); }
function isText(value: unknown): value is string { return typeof value === 'string'; }
const pair = ['a', 1] as const satisfies readonly [string, number];
console.log(Geometry.total(new Square(2), new Square(3)), Color[5], Color.Blue, Flag.A, new Square(1), isText(pair[0]), pair!);
