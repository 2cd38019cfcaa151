# ERR, DEBUG and RETURN traps.
# Also as a cell of a context.
trap 'echo "err $? line $LINENO"' ERR
false
if false; then :; fi
true && ! true
(exit 4)
f() { trap 'echo return trap' RETURN; echo in f; }
f
trap - RETURN
