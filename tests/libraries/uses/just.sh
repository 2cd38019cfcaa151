printf 'name := "world"\nhello who=name: first\n    @echo "hello {{who}}"\nfirst:\n    #!/bin/bash\n    echo first\n' >justfile
just hello you
just --list --unsorted
