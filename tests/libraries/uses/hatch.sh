hatch --quiet new trial >log 2>&1
cd trial
hatch version
hatch version minor >log 2>&1
hatch version
find . -name '*.py' | sort
