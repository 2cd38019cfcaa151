#!/bin/bash
# dill 0.4.1: it pickles a module of a package by name only if the file lies below sys.prefix or has "site-packages" in its path; a module from
# elsewhere (pip --target, PYTHONPATH) is pickled with its whole state, like one of the program.
# A good guess: where a package lies makes no difference; seen: its variables are in the bytes, and datasets 5.2.0 fails in map() and shuffle(), as one of them
# cannot be pickled. A folder of packages outside a virtual environment should have site-packages in its path.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install dill==0.4.1
for place in "$folder/packages" "$folder/site-packages"; do
    mkdir "$place"
    printf 'import sys\nstate = {"loaded": "a state of the package"}\n' >"$place/library.py"
    PYTHONPATH=$place python3 -c '
import dill, library
print(b"a state of the package" in dill.dumps(library))'
done >seen
expect "True
False" "$(cat seen)"
