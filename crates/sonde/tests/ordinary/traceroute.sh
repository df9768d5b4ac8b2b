# traceroute by UDP as who runs the lab; by ICMP and TCP as the lab's root; then through h2 as a router.
# Linux answers a host that asks much only once a second: the second trace would get nothing.
sonde lab exec --root h2 -- sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_ratelimit'
sonde lab exec h1 -- traceroute -n -w 2 h2 | tail -n +2 | awk '{ print "UDP", $1, $2 }'
sonde lab exec --root h1 -- traceroute -I -n -w 2 h2 | tail -n +2 | awk '{ print "ICMP", $1, $2 }'
sonde lab exec --root h1 -- traceroute -T -p 99 -n -w 2 h2 | tail -n +2 | awk '{ print "TCP", $1, $2 }'
sonde lab exec --root h2 -- sh -c 'echo 0 > /proc/sys/net/ipv4/conf/all/send_redirects; echo 0 > /proc/sys/net/ipv4/conf/eth0/send_redirects; echo 1 > /proc/sys/net/ipv4/ip_forward'
sonde lab exec --root h1 -- ip route add 10.9.0.3/32 via 10.9.0.2
traceroute -n -w 2 h3 | tail -n +2 | awk '{ print "routed", $1, $2 }'
