# Exported variables, a command's own, env -i, readonly.
a=1; export b=2; c=3 sh -c 'echo "${a-no} $b $c"'; echo "${c-unset}"
env -i X=y /usr/bin/env
export -n b; sh -c 'echo "${b-gone}"'
readonly r=1; r=2; echo "after $?"
declare -i number="3 + 4"; declare -u upper=text; echo "$number $upper"; declare -p number
unset HOME; echo ~ | grep -c /
