# A DHCP server on h3, the relay on h2, which sends on, and dhclient on h1: the lease is of h1's own subnet, and h1 talks by that address.
serve --root h3 dnsmasq --keep-in-foreground --log-facility=- --pid-file= --conf-file=/dev/null --port=0 --user=root --group= --dhcp-authoritative --no-ping --dhcp-sequential-ip \
    --dhcp-range=10.9.0.100,10.9.0.120,255.255.255.0,1h --dhcp-leasefile="$PWD/leases"
serve --root h2 dnsmasq --keep-in-foreground --log-facility=- --pid-file= --conf-file=/dev/null --port=0 --user=root --group= --dhcp-relay=10.9.0.2,10.9.1.1
eventually grep -q 'DHCP relay' h2.log
eventually grep -q 'DHCP, IP range' h3.log
sonde lab exec --root h1 -- dhclient -1 -v -sf /bin/true -cf /dev/null -lf "$PWD/lease" -pf "$PWD/pid" eth0 >dhclient.log 2>&1
grep -o 'fixed-address .*;' lease
grep -o 'subnet-mask .*;' lease
own=$(awk '/fixed-address/ { print substr($2, 1, length($2) - 1) }' lease)
sonde lab exec --root h1 -- ip address add "$own/24" dev eth0
ping -c 3 -i 0.1 -q -I "$own" h3 | grep -o '[0-9] received'
grep -c DHCPACK h3.log
