# git's daemon on h2: h1 pushes, h3 clones; then a fetch by the lab's remote shell in ssh's place.
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@h1 GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@h1
git init -q --bare shared/project.git
git init -q -b trunk work
random 2000000 work/file
git -C work add file
git -C work commit -qm first
serve h2 git daemon --reuseaddr --export-all --enable=receive-pack --base-path="$PWD/shared" "$PWD/shared"
eventually listens h2 9418
git -C work push -q git://h2/project.git trunk
sonde lab exec h3 -- git clone -q -b trunk git://h2/project.git clone
cmp work/file clone/file && echo cloned
git -C work commit -q --allow-empty -m second
git -C work push -q git://h2/project.git trunk
git -C clone -c core.sshCommand=/run/sonde/bin/rsh fetch -q "h2:$PWD/shared/project.git" trunk
git -C clone log --format=%s FETCH_HEAD
{ git clone -q git://h2/none.git 2>&1 || true; } | grep -o 'access denied or repository not exported'
