# getopts takes options, their values, and what is wrong.
# Also as a cell of a context.
parse() {
    local OPTIND=1 option
    while getopts ":ab:c" option "$@"; do
        case $option in
            a|c) echo "flag $option" ;;
            b) echo "b=$OPTARG" ;;
            :) echo "no value for $OPTARG" ;;
            \?) echo "unknown $OPTARG" ;;
        esac
    done
    shift $((OPTIND - 1))
    echo "rest: $*"
}
parse -ac -b value -x -- -a file
parse -b
