# mtr's report of five rounds, by ICMP and by UDP.
mtr --report --report-cycles 5 --interval 0.2 --no-dns h2 | awk '/10.9.0.2/ { print "ICMP", $2, $3, $4 }'
mtr --udp --report --report-cycles 5 --interval 0.2 --no-dns h3 | awk '/10.9.0.3/ { print "UDP", $2, $3, $4 }'
