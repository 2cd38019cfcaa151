# mktemp, umask, modes, links, test's operators on files.
umask 027; f=$(mktemp); echo x >"$f"; stat -c '%a %s' "$f"; rm "$f"
d=$(mktemp -d ./tmp.XXXX); stat -c %a "$d"; rmdir "$d"
echo x >new; mkdir dir; ln -s new link; ln new hard; mkfifo pipe; chmod +x new
stat -c '%n %a %h' new dir link hard pipe
for t in -e -f -d -L -p -x -s -r -w; do for n in new dir link pipe none; do test $t $n && echo -n "$t$n "; done; done; echo
[[ new -ef hard && ! new -nt link ]] && echo same
rm pipe
