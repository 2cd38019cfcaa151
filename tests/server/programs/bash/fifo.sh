# A named pipe between two jobs, and its end.
# Also as a cell of a context.
mkfifo p
(for i in 1 2 3; do echo "message $i"; done >p) &
while read -r line; do echo "got $line"; done <p
wait; rm p; echo "end"
