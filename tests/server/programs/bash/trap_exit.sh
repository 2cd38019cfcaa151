# The EXIT trap runs once at the end and sees the status, which stays.
trap 'echo "exit trap: $?"' EXIT
echo body
false
exit 3
