printf 'def f(a: int) -> str:\n    return a\n' >bad.py
node_modules/.bin/pyright --pythonpath /usr/bin/python3 bad.py || echo "status $?"
