# memcached on h2, over TCP and UDP.
serve h2 memcached -l 10.9.0.2 -p 11211 -U 11211 $([ "$(id -u)" != 0 ] || echo -u root)
eventually listens h2 11211
python3 - <<'END'
import socket
server = socket.create_connection(("h2", 11211))
lines = server.makefile("rb")
def ask(words):
    server.sendall(words)
    return lines.readline().decode().strip()
big = bytes(range(256)) * 2000
print(ask(b"set big 0 0 %d\r\n" % len(big) + big + b"\r\n"))
for n in range(500):
    assert ask(b"set k%d 0 0 4\r\n%04d\r\n" % (n, n)) == "STORED"
print(ask(b"get big\r\n"), lines.read(len(big)) == big)
lines.readline(), lines.readline()
assert ask(b"get k499\r\n") == "VALUE k499 0 4" and lines.readline() == b"0499\r\n" and lines.readline() == b"END\r\n"
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.settimeout(10)
datagrams.sendto(bytes([0, 7, 0, 0, 0, 1, 0, 0]) + b"get k7\r\n", ("h2", 11211))
print("by UDP:", datagrams.recv(1500)[8:].decode().split())
END
