// Whether dashboards are ones by Grafana's own types (@grafana/schema): each becomes the initial value of a constant of
// that type, where a name that the type does not have and a value that it does not allow are errors of the compiler.
//
//     node dashboards.mjs FILE.json…      prints what is wrong; 1 if anything is

import fs from 'node:fs';
import path from 'node:path';
import ts from 'typescript';

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const head = `import type { Dashboard, Panel, RowPanel } from '@grafana/schema';
// JSON has the texts and numbers of enums.
type Plain<T> = T extends string ? \`\${T}\` : T extends number ? T : T extends (infer E)[] ? Plain<E>[]
    : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Shown = Omit<Panel, 'targets'> & { id: number; gridPos: NonNullable<Panel['gridPos']>; targets: Query[] };
type Query = { refId: string; datasource: { type: string; uid: string }; expr: string; legendFormat: string; range: true; exemplar?: true };
type Board = Omit<Dashboard, 'id' | 'panels'> & { id: null; uid: string; panels: (Shown | RowPanel)[] };
`;
const files = new Map(process.argv.slice(2).map((file, i) => [
  path.join(here, `dashboard${i}.ts`),
  { file, text: `${head}export const board: Plain<Board> = ${fs.readFileSync(file, 'utf8')};\n` },
]));
const options = { noEmit: true, strict: true, skipLibCheck: true, types: [], module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, target: ts.ScriptTarget.ES2022 };
const host = ts.createCompilerHost(options);
const { readFile, fileExists, getSourceFile } = host;
host.fileExists = (name) => files.has(name) || fileExists(name);
host.readFile = (name) => files.get(name)?.text ?? readFile(name);
host.getSourceFile = (name, version, ...more) =>
  files.has(name) ? ts.createSourceFile(name, files.get(name).text, version) : getSourceFile(name, version, ...more);
const found = ts.getPreEmitDiagnostics(ts.createProgram([...files.keys()], options, host));
for (const each of found) {
  const { line } = each.file?.getLineAndCharacterOfPosition(each.start) ?? { line: 0 };
  const source = files.get(each.file?.fileName)?.file ?? each.file?.fileName;
  console.log(`${source}:${line + 1 - head.split('\n').length + 1}: ${ts.flattenDiagnosticMessageText(each.messageText, '\n').slice(0, 600)}`);
}
process.exit(found.length ? 1 : 0);
