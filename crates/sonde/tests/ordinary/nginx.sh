# nginx on h2 gives a file of 8 MB to one client, then to six at once on two hosts; it says so in its log.
mkdir served
random 8000000 served/file
cat >nginx.conf <<END
daemon off;
pid $PWD/nginx.pid;
events {}
http {
    access_log $PWD/access.log;
    client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy; fastcgi_temp_path $PWD/fastcgi;
    uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
    server { listen 80; root $PWD/served; }
}
END
serve h2 nginx -p "$PWD" -e stderr -c "$PWD/nginx.conf"
eventually listens h2 80
wanted=$(sha256sum <served/file)
fetch() { [ "$(curl -sS http://h2/file | sha256sum)" = "$wanted" ]; }
fetch && echo fetched
cat >fetch.sh <<END
[ "\$(curl -sS http://h2/file | sha256sum)" = "$wanted" ]
END
for number in 1 2 3; do
    fetch && echo fetched &
    sonde lab exec h3 -- bash fetch.sh && echo fetched &
done
wait
curl -sS -o /dev/null -w '%{http_code}\n' http://h2/none
eventually grep -q '10.9.0.3 .*"GET /file HTTP/1.1" 200 8000000' access.log
