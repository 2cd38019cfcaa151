# The statuses of what cannot be run, and of signals.
no-such-command; echo $?
/etc/passwd; echo $?
/tmp; echo $?
{ sh -c 'kill -9 $$'; } 2>/dev/null; echo $?
(exit 256); echo $?
(exit -1); echo $?
return 5 2>/dev/null; echo $?
exit 300
