printf 'if true;then\necho   a\nfi\n' | shfmt -i 4
