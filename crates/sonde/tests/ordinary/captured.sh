# tcpdump on h2, which sends on between h1 and h3, sees each datagram on both of its interfaces, once more and once less old.
for side in eth0 eth1; do
    serve --root h2 tcpdump -Z root -i $side -n -U -w "$PWD/$side.pcap" icmp
    eventually grep -q "listening on $side" h2.log
done
ping -c 3 -i 0.1 -q h3 | grep -o '[0-9] received'
requests() { tcpdump -vnr "$1.pcap" 2>/dev/null | tr '\n' ' ' | grep -o 'ttl [0-9]*[^>]*> 10.9.1.1: ICMP echo request' | grep -o 'ttl [0-9]*' | sort | uniq -c | awk '{ print $1, $2, $3 }'; }
both() { [ -n "$(requests eth0)" ] && [ -n "$(requests eth1)" ]; }
eventually both
for side in eth0 eth1; do echo "$side $(requests $side)"; done
