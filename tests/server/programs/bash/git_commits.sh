# git: init, commits, a branch, a merge, a diff, the log.
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE='2024-01-05T10:00:00Z' GIT_COMMITTER_DATE='2024-01-05T10:00:00Z'
git init -q -b main repo && cd repo || exit
echo one >f; git add f; git commit -qm first
git switch -qc side; echo two >>f; git commit -qam second
git switch -q main; echo new >g; git add g; git commit -qm third; git merge -q side -m merged
git log --oneline --graph; git diff HEAD~1 --stat; git show --no-patch --format='%h %an %s' HEAD^2
git status --short; git checkout -q nowhere
echo "status $?"; cd ..; rm -rf repo
