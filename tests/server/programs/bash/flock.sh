# flock holds a lock over several commands, and another cannot take it.
# Also as a cell of a context.
exec 200>lock
flock -n 200 && echo locked
flock -n lock -c 'echo never' || echo "busy"
flock -u 200
flock -n lock -c 'echo free'
