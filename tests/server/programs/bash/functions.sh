# Functions: locals, recursion, returned texts, a name reference, $FUNCNAME.
# Also as a cell of a context.
fact() { (($1 < 2)) && echo 1 || echo $(($1 * $(fact $(($1 - 1))))); }
fact 10
scope() { local v=inner; inner_scope; echo "$v"; }
inner_scope() { v=changed; echo "${FUNCNAME[*]:0:2}"; }
v=outer; scope; echo $v
set_by_name() { local -n ref=$1; ref="set from inside"; }
set_by_name target; echo "$target"
f() { return 260; }; f; echo $?
declare -f f
unset -f f; f
