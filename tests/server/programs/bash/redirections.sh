# Redirections: both streams, order, append, descriptors, reading and writing one file.
# Also as a cell of a context.
{ echo out; echo err >&2; } >both 2>&1
{ echo out; echo err >&2; } 2>&1 >only_out | sed 's/^/piped: /'
echo more >>both; cat both only_out
exec 5<>file; echo "line 1" >&5; exec 5>&-
exec 6<file; read -r l <&6; echo "$l"; exec 6<&-
ls none 2>/dev/null || echo "hidden error $?"
echo x >/none/file; echo "status $?"
&>all echo "to all"; cat all
