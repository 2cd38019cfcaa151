# tar and gzip keep modes and links; what comes out is what went in.
mkdir in; echo text >in/f; chmod 750 in/f; ln -s f in/link; touch -d @1000000000 in/f
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -czf a.tgz in
tar -tvzf a.tgz | awk '{ print $1, $2, $3, $6, $7, $8 }'
mkdir out; tar -xzf a.tgz -C out && diff -r in out/in && stat -c '%a %s %F' out/in/f out/in/link
gzip -n <in/f | md5sum; head -c 1000 /dev/zero | gzip -nc | zcat | wc -c
rm a.tgz
echo broken | gzip -d; echo $?
