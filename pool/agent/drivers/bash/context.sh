# A bash that stays, and two processes around it: this one speaks with the agent over descriptor 3 (PROTOCOL.md, Drivers), another
# waits for the shell's end. So functions, options, traps and descriptors of the code never meet those of the driver.
# The shell's script is a pipe. It brings one line for each cell, which sources the cell's text from another pipe.

exec {script}<> <(:) {answers}<> <(:)
own=/proc/$BASHPID/fd

# An interrupt skips the rest of a cell: while DEBUG's trap answers 2, bash returns from every function and from the sourced
# text. `return` in the trap itself would leave one function, and bash then tells wrong names of jobs.
skip='((${#BASH_SOURCE[@]} < 2)) || builtin test 1 2 3 2>/dev/null'
interrupt="builtin trap 'builtin shopt -s extdebug; builtin trap \"${skip//\$/\\$}\" DEBUG' INT"

# The answer after a cell: statuses, options and `$_`, then the traps, kept for the next cell. A trap on DEBUG may print, so all
# else is mute. The text's own end answers, before any trap or option sees it; the script answers for a text that did not end so.
to=">>$own/$answers"
traps="builtin set +evx; builtin printf '\0' $to; builtin trap -p DEBUG $to; builtin trap - DEBUG"
for name in RETURN ERR INT; do traps+="; builtin printf '\0' $to; builtin trap -p $name $to"; done
traps+="; builtin printf '\0' $to; builtin trap - RETURN ERR"
text_answer="{ builtin printf '%s ' \"\$?\" \"-\$-\" \"\${PIPESTATUS[@]}\" \"; \$_\" $to; $traps; } >/dev/null 2>&1"
answer="{ builtin printf '\0%d -%s %d ; ' \"\$?\" \"\$-\" \"\$?\" $to && "
read_line="builtin read -r _ <$own/$script"
answer+="{ $traps; builtin printf '.\0' $to; $read_line"
end='; }; } >/dev/null 2>&1'
# An error that throws bash back to its script, as `declare -i x=1/0` does, takes the rest of a line along: the next one answers.
two_answers="$answer; $read_line$end"$'\n'"$answer$end"
# An answer takes the lines after it away; a shell that cannot answer ends at this one.
guard=') hearth: a context cannot go on after this cell, which turned off commands that it needs'

start=$'(^|[\n;&|{])[ \t]*'
defines_builtin=$'(^|[ \t\n;&|({])(builtin[ \t]*\\(|function[ \t]+builtin)'
turns_off="${start}(set[ "$'\t'"]+(-[a-zA-Z]+ +)*-([a-zA-Z]*n|[a-zA-Z]*o +noexec)"
turns_off+=$'|enable +-n[^\n;&|]* (builtin|[.]|printf|read|set|shopt|test|trap))($|[ \t\n;&|}])'
lists_traps=$'(^|[ \t\n;&|({])trap([ \t]+-p([^\n;&|)]*INT)?)?[ \t]*($|[\n;&|)}<>])'
shows_lines=$'set +-[^\n;&|]*v'

say() {
    printf '%s %d\n%s' "$1" "${#2}" "$2" >&3
}

# receive FD NAME...: NUL-terminated texts, or the end.
receive() {
    local fd=$1 name
    shift
    for name; do
        IFS= read -r -d '' -u "$fd" "$name" || exit 0
    done
}

# Starts the shell in a process group of its own, so that `kill 0` in the code, and an interrupt, end nothing else. Answers its
# number, and when it has ended its status.
keep_shell() {
    set -m
    SHLVL=$((SHLVL - 1)) bash --norc --noprofile /dev/fd/3 3<"/proc/self/fd/$script" {script}>&- {answers}>&- </dev/null &
    exec {script}>&- 2>/dev/null  # bash itself would report a shell that was killed
    printf '%s\0' "$!" >&"$answers"
    wait -f "$!"  # not for a stop
    printf '\0ended\0%s\0.\0' "$?" >&"$answers"
}

# The context is over: the shell ran `exit` or `exec`, was killed, or failed under `set -e` or `set -u`.
shell_ended() {
    (($1 == 0)) || printf 'hearth: the shell of this context ended with status %d, and the context with it\n' "$1" >&2
    exit "$1"
}

refuse() {
    printf 'hearth: %s; run this code without a context\n' "$1" >&2
    say 'done' '2 0 0'
}

# Sets `before`: what makes the shell as the last cell left it. Newlines in traps would change the numbers of the code's lines.
prepare() {
    local statuses=$statuses flags=${options//[^evxET]/} trap
    before=$interrupt
    [[ ! $text =~ $lists_traps ]] || before='builtin trap - INT'  # Hearth's own would be listed
    [[ ! $interrupted ]] || before="builtin shopt -u extdebug; $before"  # it takes -E and -T along
    for trap in "$on_interrupt" "$on_return" "$on_error" "$on_debug"; do
        [[ ! $trap ]] || before+="; builtin ${trap//$'\n'/"'\$'\\n''"}"
    done
    [[ ! $flags ]] || before+="; builtin set -$flags"
    [[ $traced || ! $last ]] || before+="; builtin : ${last@Q}"
    [[ " $statuses " == *" $status "* ]] || statuses=$status
    [[ $statuses == 0 ]] || before+="; (exit ${statuses// /) | (exit })"
    before="{ $before; } >/dev/null 2>&1"
    ((status == 0)) || before+=' && :'  # a failure that is over: neither ERR nor `set -e` may see it
}

# Sets `objections`: what the parser says of the text.
parse() {
    objections=$(shopt -s extglob; eval $'builtin set -n\n'"$text" 2>&1)
}

# Checks that the text ends where it should, so that lines after it are commands. `set -v` would show them.
is_whole() {
    [[ $options != *v* && ! $text =~ $shows_lines && ! $objections ]]
}

# Sets `error` and leaves of the text the lines before the command that has it. An error within $( ) ends bash or breaks its memory,
# so the shell must not read it.
cut_error() {
    error='' error_status=0
    [[ $objections && $text == *[\$\<\>]\(* ]] || return
    exec {cell}< <(printf '%s\n' "$text")
    error=$(bash -O extglob -n "$own/$cell" 2>&1 3>&-) && error='' || error_status=$?
    exec {cell}<&-
    [[ $error ]] || return
    [[ ! $error =~ line\ ([0-9]+):\ syntax\ error\ near ]] || text=$(head -n "${BASH_REMATCH[1]}" <<<"$text")
    text=$'\n'$text
    while text=${text%$'\n'*}; parse; [[ $objections || $text == *\\ ]]; do :; done
    text=${text#$'\n'}
}

# Reads the answers to one cell. The text's, if it came to its end, stands before the script's.
receive_answer() {
    local texts=() each trace=${options//[^ET]/}
    while receive "$answers" each && [[ $each != . ]]; do texts+=("$each"); done
    [[ ${texts[-2]} != ended ]] || shell_ended "${texts[-1]}"
    ((${#texts[@]} == 11)) || { texts=("${texts[@]: -5}"); [[ $text != *"$text_answer" ]] || error=''; }
    read -r status options statuses <<<"${texts[0]%%;*}"
    last=${texts[0]#*; } last=${last% }
    on_debug=${texts[1]%$'\n'} on_return=${texts[2]%$'\n'} on_error=${texts[3]%$'\n'} on_interrupt=${texts[4]%$'\n'}
    [[ $on_interrupt != *"builtin shopt -s extdebug; builtin trap "* ]] || on_interrupt=''
    interrupted=''
    [[ $on_debug != *"$skip"* ]] || interrupted=yes status=130 statuses=130 on_debug='' options=${options//[ET]/}$trace
}

set -m
keep_shell 3>&- </dev/null &
set +m
receive "$answers" shell
trap 'kill -INT -- "-$shell"' INT
printf 'exec 3<&-; BASH_ARGV0=bash\n' >&"$script"

status=0 statuses=0 options='' last='' interrupted='' on_debug='' on_return='' on_error='' on_interrupt=''
while receive 3 length kind cwd name file entries; do
    for ((; entries > 0; --entries)); do receive 3 entry; done  # the shell has begun with these
    receive 3 text
    say begun ''
    if [[ $text =~ $defines_builtin ]]; then refuse 'a context cannot have a function named builtin'; continue; fi
    if [[ $text =~ $turns_off ]]; then refuse 'a context cannot go on after `set -n`, nor without its builtins'; continue; fi
    traced=$on_error$on_debug
    [[ $options != *x* ]] || traced=x
    prepare
    parse
    cut_error
    ! is_whole || text+=$'\n\n'$text_answer
    # Traps and `set -x` would see the sourcing, so the text sets them itself, on its first line: the code's lines keep their numbers.
    [[ ! $traced ]] || text="$before; $text" before=:
    exec {cell}< <(printf '%s\n' "$text")
    printf '%s; builtin . %s; %s\n%s\n' "$before" "$own/$cell" "$two_answers" "$guard" >&"$script"
    receive_answer
    exec {cell}<&-
    [[ ! $error ]] || { printf '%s\n' "$error" >&2; status=$error_status statuses=$status; }
    say 'done' "$status 0 0"
done
