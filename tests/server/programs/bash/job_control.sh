# kill of a job by %1, its status, and wait -n.
# Also as a cell of a context.
sleep 30 &
kill %1
wait %1
echo "killed $?"
(exit 7) & sleep 5 & wait -n; echo "any $?"
kill $!
wait 2>/dev/null
