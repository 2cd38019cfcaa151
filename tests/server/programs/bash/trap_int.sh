# SIGINT ends a script that does not trap it, after its EXIT trap.
trap 'echo bye' EXIT
kill -INT $$
echo never
