# kill of a job by %1, its status by its process id (%1 may be forgotten by then), and wait -n.
# Also as a cell of a context.
sleep 30 & job=$!
kill %1
wait "$job"
echo "killed $?"
(exit 7) & sleep 5 & wait -n; echo "any $?"
kill $!
wait 2>/dev/null
