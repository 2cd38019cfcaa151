'use strict';
// Code of the inspector cannot import. So import() and import declarations of a cell become calls of a function that can.

const vm = require('node:vm');

// Declarations begin a line; what stands between `import` and `from` has no quote and no parenthesis.
const kDeclaration = /^([ \t]*)import\s*(?:([\w$*{][^'"()]*?)\s*from\s*)?(['"])([^'"\n]+)\3[ \t]*(?:(?:with|assert)[ \t]*(\{[^}]*\}))?[ \t]*;?/gm;
const kCall = /(?<!(?<!\.\.)\.\s*)(?<![\w$#])import(?=\s*\()/g;

function parses(code) {
  try {
    new vm.Script(`(async () => {${code}\n})`);
    return true;
  } catch {
    return false;
  }
}

// `a, { b as c }` as the pattern of a declaration; null where it is no clause.
function pattern(clause) {
  const parts = /^(?:([\w$]+)\s*(?:,\s*|$))?(?:\*\s*as\s+([\w$]+)|\{([^}]*)\})?$/.exec(clause.trim());
  if (!parts) return null;
  const [, byDefault, all, names] = parts;
  const fields = (names ?? '').split(',').map((each) => each.trim()).filter(Boolean).map((each) => each.replace(/\s+as\s+/, ': '));
  if (byDefault) fields.unshift(`default: ${byDefault}`);
  return { all, fields: fields.length > 0 ? `{ ${fields.join(', ')} }` : null };
}

function declarations(code, call) {
  return code.replace(kDeclaration, (text, indent, clause, quote, name, options) => {
    const loaded = `await ${call}('${name}'${options ? `, { with: ${options} }` : ''})`;
    const lines = '\n'.repeat(text.split('\n').length - 1);
    if (!clause) return `${indent}${loaded};${lines}`;
    const wanted = pattern(clause);
    if (!wanted) return text;
    const taken = [wanted.all && `${wanted.all} = ${loaded}`, wanted.fields && `${wanted.fields} = ${loaded}`].filter(Boolean);
    return `${indent}const ${taken.join(', ')};${lines}`;
  });
}

// import() is a call, and no part of a string, comment or pattern, where the parser refuses another character.
function calls(code, call) {
  let out = '';
  let copied = 0;
  for (const { index } of code.matchAll(kCall)) {
    if (parses(`${code.slice(0, index)}@@@@@@${code.slice(index + 6)}`)) continue;
    out += code.slice(copied, index) + call;
    copied = index + 6;
  }
  return out + code.slice(copied);
}

/** The code with `call` in place of what imports. Of code that does not parse only declarations change: the error is not theirs. */
function withoutImports(code, call) {
  if (!/\bimport\b/.test(code)) return code;
  const declared = parses(code) ? code : declarations(code, call);
  return parses(declared) ? calls(declared, call) : declared;
}

module.exports = { parses, withoutImports };
