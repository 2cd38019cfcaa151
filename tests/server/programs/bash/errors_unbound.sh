# Errors that end a script, and errors that do not.
readonly fixed=1
(fixed=2; echo never) ; echo "subshell $?"
unset fixed; echo "unset $?"
cd /none || echo "cd failed"
set -o nosuchoption; echo "$?"
shift 5; echo "$?"
break; echo "break $?"
local x=1; echo "local $?"
echo ${v[}
echo never
