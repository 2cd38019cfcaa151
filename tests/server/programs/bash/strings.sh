# Parameter expansion: defaults, slices, replacement, cases, quoting.
path=/usr/local/lib/libx.so.1
echo "${path##*/} ${path%/*} ${path/local/LOCAL} ${path//l/L} ${#path} ${path:5:5} ${path: -4}"
v="hello wörld"
echo "${v^} ${v^^} ${v,,} ${v@Q} ${v/#hello/bye} ${v/%d/D} ${#v}"
echo "${unset:-a} ${unset:+b} ${unset=c} ${unset} ${v:+set}"
echo ${v/ /'  '} "$(printf '%q' 'a b$c')" $'tab\there' "${!v@}"
name=path; echo "${!name}"
: "${missing:?is needed}"
echo never
