# A file beside the program's own.
cd "$(dirname "${BASH_SOURCE[0]}")" || exit
own=$PWD
cd "$OLDPWD" || exit
echo text >"$own/beside.txt"
[[ -e beside.txt ]] && echo here || echo elsewhere
