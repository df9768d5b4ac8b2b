# traceroute and mtr from h1 to h3 over two routers of the model, as who runs the lab, and traceroute by ICMP and TCP as its root.
hops() { tail -n +2 | awk '{ print $1, $2 }' | paste -sd ' '; }
echo "UDP $(sonde lab exec h1 -- traceroute -n -w 2 h3 | hops)"
echo "ICMP $(sonde lab exec --root h1 -- traceroute -I -n -w 2 h3 | hops)"
echo "TCP $(sonde lab exec --root h1 -- traceroute -T -p 99 -n -w 2 h3 | hops)"
mtr --report --report-cycles 5 --interval 0.2 --no-dns h3 | awk '/10[.]9[.]/ { print "mtr", $2, $3, $4 }'
ping -c 1 -W 2 -M do -s 2000 h3 2>&1 | grep -o 'Frag needed.*' || true
