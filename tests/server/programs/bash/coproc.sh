# A coprocess answers over its two descriptors.
# Also as a cell of a context.
coproc UPPER { while read -r l; do echo "${l^^}"; done; }
echo "hello" >&"${UPPER[1]}"
read -r answer <&"${UPPER[0]}"
echo "$answer"
pid=$UPPER_PID
eval "exec ${UPPER[1]}>&-"
wait "$pid"; echo "$?"
