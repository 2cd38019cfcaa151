printf "Command('out', 'in', 'tr a-z A-Z <\$SOURCE >\$TARGET')\n" >SConstruct
echo text >in
scons -Q -j2
cat out
scons -Q
