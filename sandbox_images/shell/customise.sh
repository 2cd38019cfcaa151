#!/bin/busybox sh
# Runs inside the new root, as root: makes a system of one program.
set -eu

bb=/bin/busybox
$bb find /usr/share -mindepth 1 -maxdepth 1 ! -name zoneinfo -exec $bb rm -rf {} +
$bb rm -rf /usr/share/zoneinfo/right # with leap seconds
$bb mkdir -p /proc /dev /sys /tmp /workspace /.hearth /etc /bin /sbin /usr/bin /usr/sbin
for applet in $($bb --list); do
    [ -e "/bin/$applet" ] || $bb ln -s busybox "/bin/$applet"
done
for folder in /usr/bin /usr/sbin /sbin; do $bb rmdir "$folder"; done
ln -s ../bin /usr/bin
ln -s ../bin /usr/sbin
ln -s bin /sbin

printf 'root:x:0:0:root:/:/bin/sh\nsandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n' >/etc/passwd
printf 'root:x:0:\nsandbox:x:1000:\n' >/etc/group
printf '127.0.0.1 localhost\n' >/etc/hosts
: >/etc/resolv.conf

chown 1000:1000 /workspace
chmod 1777 /tmp
chmod -R ug-s,go+rX /bin /etc /usr
