'use strict';
// Code of the inspector cannot import. So import() and import declarations of a cell become calls of a function that can.
// Node has no public parser of JavaScript, and an image may have none either. So V8 tells where code refuses to parse.

const { Session } = require('node:inspector');
const vm = require('node:vm');

const kHead = '(async () => {';
const kComment = String.raw`/\*[^]*?\*/|//.*`;
const kGap = String.raw`(?:\s|${kComment})*`;
const kText = String.raw`'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"`;
const kDeclaration = new RegExp(
  String.raw`import${kGap}(?:((?:[^'"/();]|${kComment}|${kText})+?)\bfrom${kGap}|)(${kText})(?:[ \t]*(?:with|assert)[ \t]*(\{[^}]*\}))?;?`, 'y');
const kCall = new RegExp(String.raw`(?<![\w$#])import(?=${kGap}\()`, 'g');
const kClause = /^(?:([^\s,*{}]+)\s*(?:,\s*|$))?(?:\*\s*as\s+([^\s,{}]+)|\{([^}]*)\})?$/;

const session = new Session();
session.connect();

function parses(code) {
  try {
    new vm.Script(`${kHead}${code}\n})`);
    return true;
  } catch {
    return false;
  }
}

// The offset of the first import declaration; -1 if V8 refuses something else before it, or nothing. The @ keeps code from running.
function placeOfDeclaration(code) {
  let refusal;
  const parameters = { expression: `${kHead}${code}\n}) @`, objectGroup: 'parse', silent: true };
  session.post('Runtime.evaluate', parameters, (_, answer) => { refusal = answer.exceptionDetails; });
  session.post('Runtime.releaseObjectGroup', { objectGroup: 'parse' });
  if (!/Cannot use import statement outside a module/.test(refusal.exception?.description)) return -1;
  const { lineNumber, columnNumber } = refusal;
  const ends = [...code.matchAll(/\r\n|[\n\r\u2028\u2029]/g)];
  return lineNumber === 0 ? columnNumber - kHead.length : ends[lineNumber - 1].index + ends[lineNumber - 1][0].length + columnNumber;
}

// `a, { b as c }` as the pattern of a declaration; null where it is no clause.
function pattern(clause) {
  const parts = kClause.exec(clause.replace(new RegExp(kComment, 'g'), ' ').trim());
  if (!parts) return null;
  const [, byDefault, all, names] = parts;
  const fields = (names ?? '').split(',').map((each) => each.trim()).filter(Boolean).map((each) => each.replace(/\s+as\s+/, ': '));
  if (byDefault) fields.unshift(`default: ${byDefault}`);
  return { all, fields: fields.length > 0 ? `{ ${fields.join(', ')} }` : null };
}

// The statement in place of a declaration, on as many lines.
function declaration([text, clause, name, options], call) {
  const loaded = `await ${call}(${name}${options ? `, { with: ${options} }` : ''})`;
  const lines = '\n'.repeat(text.split('\n').length - 1);
  if (clause === undefined) return `void ${loaded};${lines}`;
  const names = pattern(clause);
  if (!names) return null;
  const bindings = [names.all, names.fields].filter(Boolean).map((each) => `${each} = ${loaded}`);
  return `${bindings.length > 0 ? `const ${bindings.join(', ')}` : loaded};${lines}`;
}

function declarations(code, call) {
  let out = code;
  for (let at = placeOfDeclaration(out); at >= 0; at = placeOfDeclaration(out)) {
    kDeclaration.lastIndex = at;
    const found = kDeclaration.exec(out);
    const instead = found && declaration(found, call);
    if (!instead) return out;
    out = out.slice(0, at) + instead + out.slice(at + found[0].length);
  }
  return out;
}

// The word is part of a string, comment or pattern where @ may stand, and a name where an empty template may not.
function calls(code, call) {
  let out = '';
  let copied = 0;
  for (const { index } of code.matchAll(kCall)) {
    const [before, after] = [code.slice(0, index), code.slice(index + 6)];
    if (parses(`${before}@${after}`) || !parses(`${before}\`\`${after}`)) continue;
    out += code.slice(copied, index) + call;
    copied = index + 6;
  }
  return out + code.slice(copied);
}

/** The code with `call` in place of what imports. Of code that does not parse only declarations change: the error is not theirs. */
function withoutImports(code, call) {
  if (!/\bimport\b/.test(code)) return code;
  const declared = declarations(code, call);
  return parses(declared) ? calls(declared, call) : declared;
}

module.exports = { parses, withoutImports };
