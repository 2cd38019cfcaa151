# What ./run and ./test share, to be sourced: steps with their time, and missing packages.
# The caller sets `repo`, the root of the repository.

die() {
    echo "$(basename -- "$0"): $*" >&2
    exit 1
}

require_root_on_debian() {
    ((EUID == 0)) || die "needs root, for containers and packages; try: sudo $0"
    command -v apt-get dpkg-query >/dev/null || die "needs Debian 12 or a system like it: there is no apt-get here"
}

# step TEXT COMMAND...: runs the command between two lines, the second with the seconds it took.
step() {
    local text=$1 started=$SECONDS status=0
    shift
    echo "==> $text"
    "$@" || status=$?
    if ((status != 0)); then
        echo "==> $text: failed after $((SECONDS - started)) s" >&2
        return "$status"
    fi
    echo "==> $text: $((SECONDS - started)) s"
}

# packages_of GROUP...: names and reasons from debian-packages.
packages_of() {
    local group
    for group in "$@"; do
        sed -n "s/^$group  *//p" "$repo/debian-packages"
    done
}

has_node() {
    command -v npm >/dev/null && command -v node >/dev/null &&
        node -e 'process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)' 2>/dev/null
}

# install_packages GROUP...: installs what is missing of these groups, and nothing when all is there.
install_packages() {
    local name why missing=() reasons=() installed
    # dpkg-query fails when one name is unknown to it, which only means that it is missing.
    installed=$(packages_of "$@" | awk '{ print $1 }' |
        xargs dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null || true)
    while read -r name why; do
        grep -qE "^installed (.* )?$(sed 's/[+.]/\\&/g' <<<"$name")[ ,]" <<<"$installed" && continue
        missing+=("$name")
        reasons+=("$(printf '    %-20s %s' "$name" "$why")")
    done < <(packages_of "$@")
    ((${#missing[@]})) || return 0
    echo "==> ${#missing[@]} Debian packages are missing:"
    printf '%s\n' "${reasons[@]}"
    step "apt-get install" apt_install "${missing[@]}"
}

apt_install() {
    apt-get update -q=2 || echo "    apt-get update had errors; going on with the lists that are there" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -q=2 -y --no-install-recommends \
        -o Dpkg::Use-Pty=0 "$@" >/dev/null ||
        die "apt-get could not install: $*; look at its message above, then run this again"
}

# The user that the server becomes.
make_user() {
    getent passwd hearth >/dev/null && return
    adduser --quiet --system --group --no-create-home --home /nonexistent hearth
    echo "==> made the system user hearth"
}

# build_preset PRESET [cmake --build ARGUMENT...]
build_preset() {
    local preset=$1 folder=$repo/build/$1
    shift
    # Another clone of the same sources finds what this one compiled.
    export CCACHE_BASEDIR=$repo CCACHE_NOHASHDIR=1
    cd "$repo" || return
    if [[ ! -f $folder/build.ninja || CMakePresets.json -nt $folder/build.ninja ]]; then
        cmake --preset "$preset" -Wno-dev --log-level=WARNING || return
    fi
    NINJA_STATUS='    [%f/%t] ' cmake --build --preset "$preset" "$@"
}
