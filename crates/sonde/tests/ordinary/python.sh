# The web server of Python's library on h2, and its client on h1 and h3.
mkdir served
random 3000000 served/file
serve h2 python3 -m http.server -d served 8000
eventually listens h2 8000
cat >fetch.py <<'END'
import hashlib, socket, urllib.request
got = urllib.request.urlopen("http://h2:8000/file", timeout=30).read()
print(socket.gethostname(), len(got), hashlib.sha256(got).digest() == hashlib.sha256(open("served/file", "rb").read()).digest())
END
python3 fetch.py
sonde lab exec h3 -- python3 fetch.py
