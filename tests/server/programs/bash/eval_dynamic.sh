# eval, printf -v, indirect names, command -v, type, aliases.
cmd='echo "evaluated $((1+1))"'; eval "$cmd"
printf -v "dyn_$((1+1))" '%03d' 7; echo "$dyn_2"
type -t echo if ls nothing cd; command -v ls no-such
alias hi='echo aliased'; hi 2>/dev/null || echo "no alias here"
shopt -s expand_aliases
hi
compgen -A function | wc -l; hash -r; caller; echo "$? $SHLVL" | cut -c1
