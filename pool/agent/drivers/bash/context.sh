# A bash that stays: runs one piece of code after the other in this shell, so that variables,
# functions and the working directory survive. Its channel is the descriptor 3 (PROTOCOL.md, Drivers).
# What the code does not see is kept in variables that begin with __hearth.

exec 200<&3 3<&- </dev/null

__hearth_say() {
    printf '%s %d\n%s' "$1" "${#2}" "$2" >&200
}

while IFS= read -r -d '' -u 200 __hearth_length; do
    __hearth_work=()
    for __hearth_field in kind cwd name file entries; do
        IFS= read -r -d '' -u 200 "__hearth_work[${#__hearth_work[@]}]"
    done
    for ((__hearth_left = __hearth_work[4]; __hearth_left > 0; --__hearth_left)); do
        IFS= read -r -d '' -u 200 __hearth_entry
        [[ ${__hearth_began:-} ]] || export "$__hearth_entry" 2>/dev/null
    done
    IFS= read -r -d '' -u 200 __hearth_text # is empty: the agent has put the code into the file
    __hearth_say begun ''
    [[ ${__hearth_began:-} ]] || cd -- "${__hearth_work[1]}" || exit 126
    __hearth_began=1
    # Code is sourced from a file: `return` in the trap then ends it, and with it nothing else.
    trap 'return 130' INT
    . "${__hearth_work[3]}" 200>&-
    __hearth_status=$?
    trap '' INT
    __hearth_say 'done' "$__hearth_status 0 0"
done
