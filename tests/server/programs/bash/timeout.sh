# timeout ends a command, with 124, or with the signal.
# Also as a cell of a context.
timeout 0.2 sleep 10; echo $?
{ timeout -s KILL 0.2 sleep 10; } 2>/dev/null; echo $?
timeout 5 sh -c 'exit 3'; echo $?
# It signals its command and then their group, so the command is signalled twice.
timeout 1 sh -c 'trap "trap : TERM; echo caught; exit 7" TERM; sleep 5 & wait'; echo $?
