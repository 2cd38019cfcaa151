# Sourced by each finding: a temporary folder with a HOME of its own, gone at the end; install; expect.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
mkdir "$folder/home" "$folder/work"
export HOME=$folder/home
cd "$folder/work"

# Installs pinned packages into a virtual environment and puts its programs first.
install() {
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"
    PATH=$folder/venv/bin:$PATH
}

# Fails unless the output is what the head comment says.
expect() {
    if [[ $2 == "$1" ]]; then
        printf 'as before: %s\n' "$(basename -- "$0")"
    else
        printf 'changed: %s\n--- before\n%s\n--- now\n%s\n' "$(basename -- "$0")" "$1" "$2" >&2
        exit 1
    fi
}
