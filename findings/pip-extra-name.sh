#!/bin/bash
# pip 23.2.1 (Debian 12 has 23.0.1): it takes the extra "html_clean", which justext 3.0.2 asks of lxml, for another than "html-clean", as lxml 6.1.3
# writes it now, and leaves out what the extra needs.
# A good guess: names of extras are compared like names of packages; seen: only a warning, and `import justext` fails. pip 25.3 installs it.
# A way round: name the package of the extra too: lxml-html-clean.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install pip==23.2.1
pip install --quiet --disable-pip-version-check justext==3.0.2 lxml==6.1.3 2>&1 | grep -o 'does not provide the extra.*' >warning || true
old=$(cat warning; python3 -c 'import justext' 2>/dev/null || echo import fails)
pip install --quiet --disable-pip-version-check pip==25.3
pip install --quiet --disable-pip-version-check justext==3.0.2 lxml==6.1.3
expect "does not provide the extra 'html_clean'
import fails
then installed" "$old
$(python3 -c 'import justext' && echo then installed)"
