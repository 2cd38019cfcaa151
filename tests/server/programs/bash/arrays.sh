# Arrays, associative arrays, slices, and their quoting.
# Also as a cell of a context.
a=(one "two words" three [7]=seven)
a+=(eight)
echo "${#a[@]} ${!a[@]} ${a[1]} ${a[@]:1:2}"
declare -A m=([x]=1 ["a key"]=2)
m[y]=3
for k in $(printf '%s\n' "${!m[@]}" | sort | tr ' ' _); do echo "$k"; done
unset 'a[1]' 'm[x]'
printf '<%s>' "${a[@]}" "${#m[@]}"; echo
f() { echo "$#: $1"; }
f "${a[@]}"; f "${a[*]}"; (IFS=,; f "${a[*]}")
