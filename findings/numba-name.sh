#!/bin/bash
# numba 0.68.1: to compile a function it imports the module that the function's globals name, so it runs a file of that name.
# A good guess: code that exec() runs in a namespace has nothing to do with files; seen: a namespace whose __name__ is "step" makes
# numba run ./step.py, whose output comes among the program's.
# A way round: a program that executes code in namespaces gives them the name "__main__", or a name that no file has.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install numba==0.68.1
echo 'print("a file was run as", __name__)' >step.py
expect "a file was run as step
2" "$(python3 -c '
names = {"__name__": "step"}
exec("import numba\n@numba.njit\ndef f(n):\n    return n + 1\n", names)
print(names["f"](1))')"
