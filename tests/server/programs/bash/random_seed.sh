# RANDOM with a seed, SECONDS, LINENO, process ids, and the shell's options.
RANDOM=42; echo $RANDOM $RANDOM
SECONDS=100; echo $((SECONDS >= 100 && SECONDS < 110))
echo "line $LINENO, bash ${BASH_VERSINFO[0]}, options $-, $# arguments"
[ "$$" = "$BASHPID" ] && (($(echo "$BASHPID") != $$)) && echo "a subshell has an id of its own"
((PPID > 0)) && ulimit -c
