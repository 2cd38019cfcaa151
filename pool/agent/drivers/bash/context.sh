# A bash that stays, and two processes around it: this one speaks with the agent over descriptor 3 (PROTOCOL.md, Drivers), another
# waits for the shell's end. So functions, options, traps and descriptors of the code never meet those of the driver.
# The shell's script is a pipe. It brings one line for each cell, which sources the cell's text from another pipe.

exec {script}<> <(:) {answers}<> <(:)

# An interrupt skips the rest of a cell: while DEBUG's trap answers 2, bash returns from every function and from the sourced
# text. `return` in the trap itself would leave one function, and bash then tells wrong names of jobs.
skip='((${#BASH_SOURCE[@]} < 2)) || builtin test 1 2 3 2>/dev/null'
interrupt="trap 'builtin shopt -s extdebug; builtin trap \"${skip//\$/\\$}\" DEBUG' INT"

# The shell's answer after each cell, kept for the next one: status, options, traps. A trap on DEBUG may print, so all else is mute.
answer='{ builtin printf "%s\0%s\0" "$?" "$-" >>FILE; builtin trap -p INT >>FILE; builtin printf "\0" >>FILE; '
answer+='builtin trap -p DEBUG >>FILE; builtin printf "\0" >>FILE; '
answer+='builtin set +vx; builtin trap - DEBUG; builtin shopt -u extdebug; } >/dev/null 2>&1'

defines_builtin=$'(^|[ \t\n;&|({])(builtin[ \t]*\\(|function[ \t]+builtin)'

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
    printf 'ended\0%s\0\0\0' "$?" >&"$answers"
}

# The context is over: the shell ran `exit` or `exec`, was killed, or failed under `set -e` or `set -u`.
shell_ended() {
    (($1 == 0)) || printf 'hearth: the shell of this context ended with status %d, and the context with it\n' "$1" >&2
    exit "$1"
}

set -m
keep_shell 3>&- </dev/null &
set +m
receive "$answers" shell
trap 'kill -INT -- "-$shell"' INT
printf 'exec 3<&-; BASH_ARGV0=bash\n' >&"$script"

own=/proc/$BASHPID/fd
answer=${answer//FILE/$own/$answers}
options='' on_interrupt='' on_debug=''
while receive 3 length kind cwd name file entries; do
    for ((; entries > 0; --entries)); do receive 3 entry; done  # the shell has begun with these
    receive 3 text
    say begun ''
    if [[ $text =~ $defines_builtin ]]; then
        printf 'hearth: a context cannot have a function named builtin; run this code without a context\n' >&2
        say 'done' '2 0 0'
        continue
    fi
    # On the first line, so that the code's lines keep their numbers.
    before=${on_interrupt:-$interrupt}
    [[ ! $on_debug ]] || before+="; $on_debug"
    [[ $options != *v* ]] || before+='; builtin set -v'
    [[ $options != *x* ]] || before+='; builtin set -x'
    exec {cell}< <(printf '%s; %s\n' "$before" "$text")
    printf 'builtin . %s; %s\n' "$own/$cell" "$answer" >&"$script"
    receive "$answers" status options on_interrupt on_debug
    exec {cell}<&-
    [[ $status != ended ]] || shell_ended "$options"
    on_interrupt=${on_interrupt%$'\n'} on_debug=${on_debug%$'\n'}
    [[ $on_debug != *"$skip"* ]] || status=130 on_debug=''
    say 'done' "$status 0 0"
done
