# A script that is killed by a signal of its own.
echo before
kill -KILL $$
echo never
