printf 'const a: number = "x";\nexport { a };\n' >a.ts
node_modules/.bin/tsc --noEmit a.ts || echo "status $?"
