# What ./run and ./test share, to be sourced: steps with their time, missing packages, builds and their progress.
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

# begin_beside TEXT COMMAND...: runs it beside what follows, as a group of its own that stop_beside can end.
beside='' beside_text='' beside_log=''
begin_beside() {
    beside_text=$1 beside_log=$(mktemp)
    shift
    set -m
    "$@" >"$beside_log" 2>&1 </dev/null &
    beside=$!
    set +m
}

# end_beside: waits for it and shows what it said; its status.
end_beside() {
    local status=0
    [[ -n $beside ]] || return 0
    ! kill -0 "$beside" 2>/dev/null || echo "==> waiting for $beside_text"
    wait "$beside" || status=$?
    beside=''
    cat "$beside_log"
    rm -f "$beside_log"
    return "$status"
}

stop_beside() {
    [[ -z $beside ]] || kill -TERM -- "-$beside" 2>/dev/null || true
    end_beside >/dev/null || true
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

# missing_packages GROUP...: name and reason of each package of these groups that is not installed.
missing_packages() {
    local name why installed
    # dpkg-query fails when one name is unknown to it, which only means that it is missing.
    installed=$(packages_of "$@" | awk '{ print $1 }' |
        xargs dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null || true)
    while read -r name why; do
        grep -qE "^installed (.* )?$(sed 's/[+.]/\\&/g' <<<"$name")[ ,]" <<<"$installed" && continue
        printf '    %-20s %s\n' "$name" "$why"
    done < <(packages_of "$@")
}

# install_packages GROUP...: installs what is missing of these groups, and nothing when all is there.
install_packages() {
    local reasons missing
    reasons=$(missing_packages "$@")
    [[ -n $reasons ]] || return 0
    mapfile -t missing < <(awk '{ print $1 }' <<<"$reasons")
    echo "==> ${#missing[@]} Debian packages are missing:"
    echo "$reasons"
    step "apt-get install" apt_install "${missing[@]}"
}

apt_install() {
    apt-get update -q=2 || echo "    apt-get update had errors; going on with the lists that are there" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -q=2 -y --no-install-recommends \
        -o Dpkg::Use-Pty=0 "$@" >/dev/null ||
        die "apt-get could not install: $*; look at its message above, then run this again"
}

# python_index: what pip is set up with here, or its own default. PIP_INDEX_URL comes first, as for pip.
python_index() {
    local section index=${PIP_INDEX_URL:-} settings
    settings=$(python3 -m pip config list 2>/dev/null || true)
    for section in install global; do
        [[ -n $index ]] || index=$(sed -n "s/^$section\.index-url='\(.*\)'$/\1/p" <<<"$settings")
    done
    [[ -n $index ]] || index=$(python3 -c 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)' 2>/dev/null || true)
    echo "$index"
}

# npm_registry IMAGE CACHE: what npm is set up with here; without npm, the default of the image's own, kept in CACHE.
npm_registry() {
    local layer defaults=./usr/share/nodejs/npm/lib/utils/config/definitions.js
    if command -v npm >/dev/null; then
        npm config get registry
        return
    fi
    if [[ ! -s $2 ]]; then
        layer=$(find "$1/blobs" -type f -size +1M -print -quit)
        tar -xzOf "$layer" --occurrence=1 "$defaults" 2>/dev/null |
            sed -n "/^define('registry'/,/default:/s/.*default: .\(https[^'\"\`]*\).*/\1/p" >"$2" || true
    fi
    cat "$2"
}

# file_host INDEX: where the index's files are, if that is another host. pip of this machine trusts it, so the mirror may,
# whatever its address is here.
file_host() {
    local url
    url=$(PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --dry-run --ignore-installed --no-deps --quiet --retries 0 --timeout 5 \
        --index-url "$1" --report - six 2>/dev/null | sed -n 's#^ *"url": "\(https*://[^"]*\)".*#\1#p' | head -n 1 || true)
    url=$(without_login "$url" | cut -d/ -f3)
    [[ -z $url || $url == "$(without_login "$1" | cut -d/ -f3)" ]] || echo "$url"
}

# without_login TEXT: with its URLs as they may be shown.
without_login() {
    sed -E 's#//[^/@ ]*@#//#g' <<<"$1"
}

# make_pool MIRROR DATA_DIR: writes the pool that ./run serves. With MIRROR=yes the server gets the indexes, unless a flag
# (given_pypi, given_npm) names them: in variables, for a URL may have a login that no list of processes should show.
make_pool() {
    local pool=$2/default-pool.yaml
    if [[ $1 == no ]]; then
        "$repo/sandbox_images/default_pool" >"$pool"
        return
    fi
    "$repo/sandbox_images/default_pool" --mirror >"$pool"
    export HEARTH_MIRROR_PYPI=${given_pypi:-${HEARTH_MIRROR_PYPI:-$(python_index)}}
    export HEARTH_MIRROR_NPM=${given_npm:-${HEARTH_MIRROR_NPM:-$(npm_registry "$2/images/python" "$2/npm-default")}}
    export HEARTH_MIRROR_HOSTS=${HEARTH_MIRROR_HOSTS:-$(file_host "$HEARTH_MIRROR_PYPI")}
    echo "==> sandboxes install packages by pip and uv from $(without_login "${HEARTH_MIRROR_PYPI:-nowhere}"), by npm from" \
        "$(without_login "${HEARTH_MIRROR_NPM:-nowhere}"), and reach nothing else; --no-mirror shuts this way, too"
}

# The user that the server runs as.
make_user() {
    getent passwd hearth >/dev/null && return
    adduser --quiet --system --group --no-create-home --home /nonexistent hearth
    echo "==> made the system user hearth"
}

# time_of SECONDS: in words, no more exact than a guess is.
time_of() {
    if (($1 < 90)); then
        echo "$((($1 + 9) / 10 * 10)) s"
    else
        echo "$((($1 + 30) / 60)) min"
    fi
}

# Milliseconds that one step of a build takes one core (a file compiled, a program linked), where ccache knows nothing.
milliseconds_of_step() {
    case $1 in
        asan) echo 5000 ;;
        tsan) echo 4500 ;;
        *) echo 3200 ;;
    esac
}

# progress PRESET: ninja's lines as one of its own, with the time left: by what the steps took until now, at first by
# what they take elsewhere. A terminal has the line rewritten, a log gets it twice a minute; other lines are left as they are.
progress() {
    local each line text='' began=$SECONDS shown=$SECONDS finished all left
    each=$(($(milliseconds_of_step "$1") / $(nproc)))
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
            finished=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
            left=$(((all - finished) * (10 * each / 1000 + SECONDS - began) / (10 + finished)))
            text="    $finished of $all steps done, about $(time_of "$left") left"
            if [[ -t 1 ]]; then
                printf '\r%s\033[K' "$text"
            elif ((SECONDS - shown >= 30)); then
                echo "$text"
                shown=$SECONDS
            fi
        else
            [[ ! -t 1 || -z $text ]] || printf '\r\033[K'
            printf '%s\n' "$line"
        fi
    done
    [[ ! -t 1 || -z $text ]] || printf '\r\033[K'
}

# ccache_knows: whether the compiler cache holds anything.
ccache_knows() {
    command -v ccache >/dev/null && (($(ccache --print-stats | sed -n 's/^files_in_cache\s//p') > 0))
}

# build_preset PRESET [cmake --build ARGUMENT...]
build_preset() {
    local preset=$1 folder=$repo/build/$1
    shift
    # Another clone of the same sources finds what this one compiled.
    export CCACHE_BASEDIR=$repo CCACHE_NOHASHDIR=1
    cd "$repo" || return
    if [[ ! -f $folder/build.ninja || CMakePresets.json -nt $folder/build.ninja ]]; then
        cmake --preset "$preset" -Wno-dev --log-level=WARNING >/dev/null || return
    fi
    NINJA_STATUS='[%f/%t] ' cmake --build --preset "$preset" "$@" 2>&1 | progress "$preset"
}
