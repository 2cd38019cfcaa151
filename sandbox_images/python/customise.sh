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
sed -i 's/^#* *font\.family *:.*/font.family: sans-serif, WenQuanYi Micro Hei/' /etc/matplotlibrc
grep -q '^font.family: sans-serif, WenQuanYi' /etc/matplotlibrc

# Documentation, translations, tests and samples nobody runs here.
rm -rf /usr/share/doc /usr/share/doc-base /usr/share/info /usr/share/man /usr/share/locale \
    /usr/share/lintian /usr/share/bug /usr/share/menu /usr/share/zsh /usr/share/bash-completion \
    /usr/share/gitweb /usr/share/unicode /usr/share/matplotlib/sample_data /usr/share/javascript /usr/games
[ -e /usr/bin/gcc ] || rm -rf /usr/include
find /usr/lib/python3 /usr/lib/python3.* -depth -type d \
    \( -name tests -o -name test -o -name idlelib -o -name turtledemo \) \
    -not -path '*/numpy/testing*' -not -path '*/pandas/_testing*' -exec rm -rf {} +
find /usr/lib/python3 -depth -type d -name sphinxext -exec rm -rf {} +

# Debian's npm depends on compilers and linters for the browser that it never runs.
(cd /usr/share/nodejs && rm -rf @types @babel @webassemblyjs @jridgewell webpack webpack-sources watchpack eslint* terser \
    caniuse-lite browserslist electron-to-chromium es-abstract core-js core-js-pure core-js-compat handlebars web-streams-polyfill \
    lodash-es regenerate-unicode-properties neo-async webassemblyjs loader-* serialize-javascript schema-utils typescript jest* ts-*)
find /usr/share/nodejs \( -name '*.map' -o -name '*.d.ts' -o -name '*.md' -o -name test -o -name tests \) -prune -exec rm -rf {} +

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
find /usr/lib/python3 /usr/lib/python3.* -name __pycache__ -depth -exec rm -rf {} +
python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    /usr/lib/python3 /usr/lib/python3.* /usr/lib/hearth || true  # lib2to3 ships files that do not compile

# Matplotlib's list of fonts, put in place by hearth_fontcache.py.
seed=/usr/share/hearth/matplotlib
rm -rf "$seed"
mkdir -p "$seed"
MPLCONFIGDIR=$seed MPLBACKEND=Agg python3 /usr/lib/hearth/font_list.py
rm /usr/lib/hearth/font_list.py
rm -f "$seed"/*.lock
ls "$seed"/fontlist-*.json >/dev/null

# Other users' sandboxes read this tree through a shifted user namespace: open to all, raised by none.
chmod -R go+rX /bin/ /etc /opt /root /sbin/ /usr /var /home /srv 2>/dev/null || true
find / -xdev \( -type f -o -type d \) -perm /6000 -not -path '/proc/*' -exec chmod ug-s {} +
