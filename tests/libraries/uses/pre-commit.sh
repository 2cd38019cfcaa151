# A hook of the repository's own, in git's commit.
git init --quiet --initial-branch main
git config user.email a@example.org
git config user.name A
cat >.pre-commit-config.yaml <<'YAML'
repos:
  - repo: local
    hooks: [{id: no-tabs, name: no tabs, language: pygrep, entry: "\t", files: "[.]txt$"}]
YAML
pre-commit install >log
printf 'a\tb\n' >a.txt
git add a.txt .pre-commit-config.yaml
git commit --quiet -m one 2>&1 | grep a.txt || true
printf 'a b\n' >a.txt
git add a.txt
git commit --quiet -m one 2>log && git log --format=%s
