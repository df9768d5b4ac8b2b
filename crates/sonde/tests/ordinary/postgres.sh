# A new PostgreSQL on h2: h1 writes and reads tables by psql and pgbench, h3 takes a base backup and follows as a replica.
folder=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
PATH=${folder:+$folder:}$PATH
export PGUSER=keeper PGDATABASE=postgres PGHOST=h2
initdb -D data -A trust -U keeper --no-sync >initdb.log
echo 'host all,replication all 10.9.0.0/24 trust' >>data/pg_hba.conf
start() { serve "$1" env "PATH=$PATH" postgres -D "$PWD/$2" -h "$1" -k /tmp -c fsync=off; }
start h2 data
eventually psql -c 'select 1'
psql -qc 'create table squares as select n, n * n as square from generate_series(1, 20000) n'
psql -Atc 'select sum(square) from squares'
pgbench -i -q -s 1 2>/dev/null
pgbench -c 4 -t 50 2>/dev/null | grep 'transactions actually processed'
pg_dump -t squares | tail -n +1 | grep -c '^[0-9]'
sonde lab exec h3 -- env "PATH=$PATH" pg_basebackup -D "$PWD/copy" -R --no-sync -c fast
start h3 copy
eventually psql -h h3 -c 'select 1'
psql -qc "insert into squares values (0, 7)"
caught() { [ "$(psql -h h3 -Atc 'select square from squares where n = 0')" = 7 ]; }
eventually caught && echo replicated
{ psql -h h3 -c 'create table x (n int)' 2>&1 || true; } | grep read-only
