# A trap of a signal that the script sends itself, and one ignored.
trap 'echo got USR1' USR1
trap '' TERM
kill -USR1 $$
kill -TERM $$
echo still here
trap - TERM
kill -TERM $$
echo never
