printf '#!/bin/bash\nx=$1\nrm $x\n' >a.sh
shellcheck --format gcc a.sh || echo "status $?"
