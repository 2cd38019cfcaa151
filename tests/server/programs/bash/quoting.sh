# Word splitting, quotes in quotes, empty words, IFS.
# Also as a cell of a context.
v="a  b   c"; printf '<%s>' $v "$v" "" $empty ''; echo
IFS=,; l="x,y z,,w"; printf '<%s>' $l; echo; unset IFS
printf '%s ' "it's" 'say "hi"' \$HOME "\$(x)" "$(echo "nested "quotes" $(echo "deep")")" `echo back\\\\tick`; echo
set -- "a b" c; printf '<%s>' "$@" "$*" $@; echo; shift; echo $# "$1"
cat <<<"${v//  /_}"; echo "line \
continued" # comment
