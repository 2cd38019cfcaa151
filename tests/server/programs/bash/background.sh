# Background jobs, wait for one and for all, and their statuses.
# Also as a cell of a context.
(sleep 0.2; exit 3) & first=$!
(exit 5) & second=$!
wait "$second"; echo "second $?"
wait "$first"; echo "first $?"
sleep 0.05 & sleep 0.05 &
jobs | sed 's/\[.\][-+ ]*//'
wait; echo "all $?"
wait 99999; echo "none $?"
