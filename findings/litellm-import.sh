#!/bin/bash
# litellm 1.110.2: `import litellm` asks the network for a table of prices, three times with pauses, and without a network waits some seconds for them.
# A good guess: an import only loads code, and the table that comes with the package is used until somebody asks for another; seen: no
# network, 3 attempts and a warning. With LITELLM_LOCAL_MODEL_COST_MAP=True it asks nobody.
# A server that imports ahead must give such an import its time, or set the variable. Needs root, for a network namespace without a network.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install litellm==1.110.2
lines() {
    unshare --net env "$1" python3 -c 'import litellm' 2>&1 | grep -oE 'attempt [0-9]/[0-9] failed|after [0-9] attempts' || true
}
expect "attempt 1/3 failed
attempt 2/3 failed
after 3 attempts
with the variable: " "$(lines NOTHING=1)
with the variable: $(lines LITELLM_LOCAL_MODEL_COST_MAP=True)"
