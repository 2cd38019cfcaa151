#!/bin/bash
# highspy 1.16.0: the first Highs() of a process prints its banner to standard output before any option can be set.
# A good guess: output_flag, or silent(), keeps it quiet; seen: both come too late, as the banner is printed by the constructor.
# A reader of the program's output must expect two lines more, or make a first Highs() with descriptor 1 elsewhere.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install highspy==1.16.0
expect "Running HiGHS
made
second made" "$(python3 -uc '
import highspy
solver = highspy.Highs()
solver.silent()
print("made")
highspy.Highs().silent()
print("second made")' | grep -oE '^(Running HiGHS|.*made)')"
