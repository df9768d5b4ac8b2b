# dnsmasq on h2, as who runs the lab, answers for names that are nowhere else: to the resolver of the C library, and by TCP.
# The lab's root says on h1 where it is asked.
serve h2 dnsmasq --keep-in-foreground --log-facility=- --pid-file= --no-resolv --no-hosts --conf-file=/dev/null \
    --address=/printer.office/10.9.0.3 --host-record=mail.office,10.9.0.2 --txt-record=office,hello
eventually listens h2 53
echo 'nameserver 10.9.0.2' >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
getent hosts printer.office mail.office
getent hosts none.office || echo "none: $?"
ping -c 1 -q printer.office | grep -c ' 0% packet loss'
python3 - <<'END'
import socket, struct
question = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"\6office\0" + struct.pack(">2H", 16, 1)
stream = socket.create_connection(("h2", 53), 10)
stream.sendall(struct.pack(">H", len(question)) + question)
print("by TCP:", stream.recv(1500)[-5:].decode())
END
