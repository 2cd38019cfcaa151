printf 'def f(a: int) -> str:\n    return a\n\nf("x")\n' >bad.py
mypy --no-error-summary bad.py || echo "status $?"
mypy --strict --install-types --non-interactive -c 'x: int = 1'
