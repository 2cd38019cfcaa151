printf 'module.exports = [{ rules: { "no-unused-vars": "error", eqeqeq: "error" } }];\n' >eslint.config.js
printf 'const a = 1;\nif (1 == 2) { }\n' >a.js
node_modules/.bin/eslint --format json a.js >out.json || echo "status $?"
node -e 'console.log(JSON.parse(require("fs").readFileSync("out.json"))[0].messages.map((m) => m.ruleId).join())'
