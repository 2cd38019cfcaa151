# Background jobs, wait for one and for all, and their statuses.
# Also as a cell of a context.
(sleep 0.2; exit 3) & first=$!
(exit 5) & second=$!
wait "$second"; echo "second $?"
wait "$first"; echo "first $?"
mkfifo gate; exec 9<>gate; (read -r _ <&9) & (read -r _ <&9) &
jobs | sed 's/\[.\][-+ ]*//'
printf '\n\n' >&9; wait; echo "all $?"; exec 9>&-; rm gate
wait 99999; echo "none $?"
