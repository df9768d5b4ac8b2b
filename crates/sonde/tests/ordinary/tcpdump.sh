# tcpdump on h2 writes what passes eth0 there, and reads it back. It changes its user to the one it has, for which the lab must
# have other users.
serve --root h2 tcpdump -Z root -i eth0 -n -U -w "$PWD/seen.pcap" icmp or tcp port 5000
eventually grep -q 'listening on eth0' h2.log
ping -c 3 -i 0.1 -s 1000 -q h2 | grep -o '[0-9] received'
(: </dev/tcp/h2/5000) 2>/dev/null || echo refused
packets() { tcpdump -nr seen.pcap 2>/dev/null; }
written() { packets | grep -q 'Flags \[R'; }
eventually written
echo "requests $(packets | grep -c '10.9.0.1 > 10.9.0.2: ICMP echo request')"
echo "replies $(packets | grep -c '10.9.0.2 > 10.9.0.1: ICMP echo reply')"
echo "resets $(packets | grep -c 'Flags \[R')"
