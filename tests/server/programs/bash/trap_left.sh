# Traps that are set at the end of a script see its commands and not its end; what lists traps lists the script's own.
# Also as a cell of a context.
trap
set -ET
trap 'echo "return"' RETURN
f() { echo "in f"; }
f
trap 'echo "err $?"' ERR
g() { false; echo "in g"; }
g
(exit 4)
