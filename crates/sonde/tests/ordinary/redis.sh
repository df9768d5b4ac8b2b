# redis on h2 keeps what h1 says, and h3 reads it; its own benchmark runs over the network to its end.
serve h2 redis-server --bind 10.9.0.2 --protected-mode no --save '' --dir "$PWD"
eventually redis-cli -h h2 ping
random 300000 value
redis-cli -h h2 -x set key <value
sonde lab exec h3 -- redis-cli -h h2 --raw get key | head -c 300000 | cmp - value && echo same
seq 1000 | sed 's/.*/rpush list &/' | redis-cli -h h2 >/dev/null
redis-cli -h h2 lrange list 998 999
redis-benchmark -h h2 -n 4000 -c 20 -P 4 -q -t set,get,lpush | tr '\r' '\n' | sed -n 's/: .* requests per second.*//p'
