# exec replaces the shell by a program, with its status.
trap 'echo never' EXIT
echo before
exec sh -c 'echo replaced; exit 9'
echo never
