#!/bin/sh
# Runs inside the new root, as root, after the packages and files/ are in place: for
# sandbox_images/build and for the Dockerfile alike.
set -eu
export LC_ALL=C.UTF-8

# The one user of a sandbox.
if ! grep -q '^sandbox:' /etc/passwd; then
    echo 'sandbox:x:1000:1000:sandbox:/workspace:/bin/bash' >>/etc/passwd
    echo 'sandbox:x:1000:' >>/etc/group
fi
mkdir -p /workspace /.hearth /sys
chown 1000:1000 /workspace

# Chinese, Japanese and Korean titles need no set-up: matplotlib looks for a glyph in the families
# of font.family, one after the other (not in the list behind "sans-serif").
libraries=$(echo /usr/local/lib/python3.*/dist-packages)
settings=$libraries/matplotlib/mpl-data/matplotlibrc
sed -i 's/^#* *font\.family *:.*/font.family: sans-serif, WenQuanYi Micro Hei/' "$settings"
grep -q '^font.family: sans-serif, WenQuanYi' "$settings"

# What pip says where it is not told of an index (with one, Hearth sets PIP_BREAK_SYSTEM_PACKAGES). pip adds a note of
# its own: an option that breaks the libraries and, without a network, still installs nothing.
stdlib=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
mv /usr/lib/hearth/externally-managed "$stdlib/EXTERNALLY-MANAGED"
pip_errors=$(python3 -c 'import pip._internal.exceptions as errors; print(errors.__file__)')
sed -i -e 's/"If you believe this is a mistake, please contact your "/"No option of pip changes that."/' \
    -e '/"Python installation or OS distribution provider. "/d' -e '/"You can override this, at the risk of breaking/d' \
    -e '/by passing --break-system-packages/d' "$pip_errors"
grep -q 'No option of pip changes that' "$pip_errors"
if grep -q 'break-system-packages' "$pip_errors"; then exit 1; fi

mv /usr/lib/hearth/sitecustomize.py "$stdlib/sitecustomize.py" # also of virtual environments; Debian's only reports crashes

# Docker's users find it writable.
rm -rf /var/tmp
ln -s /tmp /var/tmp

# Documentation, translations, tests and samples nobody runs here.
rm -rf /usr/share/doc /usr/share/doc-base /usr/share/info /usr/share/man /usr/share/locale \
    /usr/share/lintian /usr/share/bug /usr/share/menu /usr/share/zsh /usr/share/bash-completion \
    /usr/share/zoneinfo/right /usr/share/gitweb /usr/share/unicode /usr/share/javascript /usr/games "$libraries/matplotlib/mpl-data/sample_data" /usr/local/share/man
if [ ! -e /usr/bin/gcc ]; then # what nobody uses without a compiler
    rm -rf /usr/include /usr/lib/*-linux-gnu/perl/5.*/CORE /usr/share/perl/5.*/CPAN /usr/share/perl/5.*/ExtUtils \
        /usr/share/perl/5.*/Module /usr/share/perl/5.*/Test* /usr/share/perl/5.*/TAP /usr/lib/python3/dist-packages/gyp
    rm -f /usr/lib/*-linux-gnu/*.a /usr/lib/*-linux-gnu/libperl.so.*
fi
find /usr/lib/python3 /usr/lib/python3.* "$libraries" -depth -type d \
    \( -name tests -o -name test -o -name idlelib -o -name turtledemo -o -name sphinxext \) -exec rm -rf {} +

# Sources and types of libraries that are compiled already, Perl's documentation and its tables for sorting, checksums
# of Debian's files, the native esbuild's double, and the servers among git's programs.
find "$libraries/fontTools" -name '*.c' -delete
find "$libraries" -name '*.pyi' -delete
find /usr/share/perl* /usr/lib/*-linux-gnu/perl -name '*.pod' -delete
rm -rf /usr/share/perl/5.*/pod /usr/share/perl/5.*/Unicode/Collate /var/lib/dpkg/info/*.md5sums /usr/lib/*-linux-gnu/nodejs/esbuild-wasm
for program in daemon http-backend imap-send http-push shell; do rm -f /usr/lib/git-core/git-$program /usr/bin/git-$program; done
rm -f /usr/lib/git-core/scalar /usr/bin/scalar
ln -sf ../../bin/git /usr/lib/git-core/git # else the same file twice

# Debian's npm depends on compilers and linters for the browser that it never runs. What npm and node need by their
# manifests stays, and what modules inside them need.
node - <<'NODE'
const fs = require('fs');
const root = '/usr/share/nodejs';
const kept = new Set();
function keep(name) {
    if (kept.has(name) || !fs.existsSync(`${root}/${name}`)) return;
    kept.add(name);
    keepNeeded(`${root}/${name}`);
}
function keepNeeded(folder) {
    if (fs.existsSync(`${folder}/package.json`)) {
        const {dependencies, optionalDependencies, peerDependencies} = JSON.parse(fs.readFileSync(`${folder}/package.json`));
        Object.keys({...dependencies, ...optionalDependencies, ...peerDependencies}).forEach(keep);
    }
    if (fs.existsSync(`${folder}/node_modules`)) modulesIn(`${folder}/node_modules`).forEach(each => keepNeeded(`${folder}/node_modules/${each}`));
}
function modulesIn(folder) {
    return fs.readdirSync(folder).flatMap(
        name => name[0] === '@' ? fs.readdirSync(`${folder}/${name}`).map(each => `${name}/${each}`) : [name]);
}
// The last ones Debian's columnify asks for, by other names than its manifest.
['npm', 'node-gyp', 'undici', 'acorn', 'acorn-walk', 'cjs-module-lexer', 'corepack', 'wcwidth.js', 'defaults', 'clone'].forEach(keep);
modulesIn(root).filter(name => !kept.has(name) && !name.endsWith('/node_modules'))
    .forEach(name => fs.rmSync(`${root}/${name}`, {recursive: true}));
// Every command of npm still finds what it needs, or the image is not made.
fs.readdirSync(`${root}/npm/lib/commands`).forEach(name => require(`${root}/npm/lib/commands/${name}`));
NODE
find /usr/share/nodejs \( -name '*.map' -o -name '*.d.ts' -o -name '*.md' -o -name test -o -name tests \) -prune -exec rm -rf {} +
find /usr/bin /usr/share/nodejs -xtype l -delete # links to what is gone
npm --version >/dev/null && npx --version >/dev/null

# Where the packages came from says something of the machine that built the image.
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d /etc/dpkg/dpkg.cfg.d/99mmdebstrap \
    /etc/apt/apt.conf.d/99mmdebstrap /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb \
    /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache /var/lib/dpkg/*-old /var/log/*.log /var/log/apt
if [ -w /etc/hostname ] && ! grep -q ' /etc/hostname ' /proc/mounts; then
    echo sandbox >/etc/hostname
    : >/etc/resolv.conf
    echo '127.0.0.1 localhost sandbox' >/etc/hosts
fi

# The root is read-only later, so bytecode is made now, trusted whatever the files' times are.
find /usr/lib/python3 /usr/lib/python3.* "$libraries" -name __pycache__ -depth -exec rm -rf {} +
python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    /usr/lib/python3 /usr/lib/python3.* "$libraries" /usr/lib/hearth || true  # lib2to3 ships files that do not compile

# Matplotlib's list of fonts, put in place by hearth_fontcache.py.
seed=/usr/share/hearth/matplotlib
rm -rf "$seed"
mkdir -p "$seed"
MPLCONFIGDIR=$seed MPLBACKEND=Agg python3 /usr/lib/hearth/font_list.py
# For another matplotlib too, which somebody installs later.
echo 'font.family: sans-serif, WenQuanYi Micro Hei' >"$seed/matplotlibrc"
rm /usr/lib/hearth/font_list.py
rm -f "$seed"/*.lock
ls "$seed"/fontlist-*.json >/dev/null

# Other users' sandboxes read this tree through a shifted user namespace: open to all, raised by none.
chmod -R go+rX /bin/ /etc /opt /root /sbin/ /usr /var /home /srv 2>/dev/null || true
find / -xdev \( -type f -o -type d \) -perm /6000 -not -path '/proc/*' -exec chmod ug-s {} +
