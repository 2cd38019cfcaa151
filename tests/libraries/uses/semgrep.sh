# Searches code by pattern, with a rule of its own.
cat >rule.yaml <<'YAML'
rules:
  - {id: no-eval, languages: [python], severity: ERROR, message: eval is found, pattern: eval(...)}
YAML
printf 'x = eval("1")\nprint(x)\n' >bad.py
semgrep scan --config rule.yaml --metrics off --disable-version-check --quiet --json bad.py |
    python3 -c 'import json, sys; print([(r["path"], r["start"]["line"], r["extra"]["message"]) for r in json.load(sys.stdin)["results"]])'
