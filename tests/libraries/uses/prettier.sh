printf 'const a={b:1}\nfunction f(  ){return a}\n' >a.js
node_modules/.bin/prettier a.js
node_modules/.bin/prettier --check a.js >/dev/null 2>&1 || echo "status $?"
