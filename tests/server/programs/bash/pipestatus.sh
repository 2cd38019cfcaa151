# PIPESTATUS, the status of a pipeline, lastpipe, negation.
# Also as a cell of a context.
false | true | (exit 3)
echo "$? ${PIPESTATUS[*]}"
! false
echo "$? ${PIPESTATUS[0]}"
true | false; echo "${PIPESTATUS[@]}"
echo x | read -r v; echo "v=${v:-unset}"
shopt -s lastpipe; echo x | read -r v; echo "v=$v"
yes | head -1; echo "${PIPESTATUS[*]}"
