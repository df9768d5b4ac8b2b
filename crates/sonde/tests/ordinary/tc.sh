# Another queue in the place of the lab's own: as the manual says, it works until the network next holds the host back.
# netem where the kernel has it; its delay is seen.
shows() { tc qdisc show dev eth0 | head -n 1 | awk '{ print $2 }'; }
least() { ping -c 5 -i 0.05 -q h2 | sed -n 's|^rtt[^=]*= \([0-9]*\).*|\1|p'; }
shows
if tc qdisc replace dev eth0 root netem delay 30ms 2>/dev/null; then
    [ "$(least)" -ge 30 ] && [ "$(shows)" = netem ] && echo replaced
else
    tc qdisc replace dev eth0 root pfifo limit 500
    ping -c 2 -i 0.05 -q h2 >/dev/null && [ "$(shows)" = pfifo ] && echo replaced
fi
tc qdisc del dev eth0 root
ping -c 2 -i 0.05 -q h2 | grep -o '[0-9] received'
# More than the line holds: the host is held back, and the lab's queue is there again.
random 2000000 file
serve h1 python3 -m http.server 8000
eventually listens h1 8000
sonde lab exec h2 -- curl -sS http://h1:8000/file | cmp - file && echo same
shows
