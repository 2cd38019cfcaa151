# source with arguments and return, a script beside it, and $0.
echo 'echo "in lib: $1 $#"; helper() { echo "helper $1"; }; return 4' >lib.sh
. ./lib.sh arg; echo "$? $#"
helper x
printf '#!/bin/bash\necho "script ${0##*/} $*"; exit 6\n' >run.sh; chmod +x run.sh; ./run.sh a b; echo $?
bash -c 'echo "$0 $1"' name first; bash -s one two <<<'echo "stdin script $# $2"'
source none.sh; echo $?
basename "$0"; echo "${BASH_SOURCE[0]##*/} ${#BASH_SOURCE[@]}"
