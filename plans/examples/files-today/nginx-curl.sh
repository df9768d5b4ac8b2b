#!/bin/sh
# A file from nginx on h2 to curl on h1, by HTTP without TLS. See shared.sh.
. "$(dirname "$0")/shared.sh"
need nginx nginx-light
need curl curl
mkdir "$DIR/tmp"
# One process, which keeps who it is: another user may not be there in a host.
cat >"$DIR/nginx.conf" <<END
daemon off;
master_process off;
pid $DIR/nginx.pid;
error_log $DIR/nginx.log notice;
events {}
http {
    access_log off;
    sendfile on;
    client_body_temp_path $DIR/tmp/body;
    proxy_temp_path $DIR/tmp/proxy;
    fastcgi_temp_path $DIR/tmp/fastcgi;
    uwsgi_temp_path $DIR/tmp/uwsgi;
    scgi_temp_path $DIR/tmp/scgi;
    server {
        listen 8080;
        root $DIR;
    }
}
END
sonde lab exec --detach h2 -- sh -c "exec $(command -v nginx) -p $DIR -c $DIR/nginx.conf >$DIR/nginx.out 2>&1"
tries=0
until curl -s -o /dev/null http://h2:8080/nginx.conf; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { cat "$DIR/nginx.log" "$DIR/nginx.out" >&2; exit 1; }
    sleep 0.1
done
moved nginx-curl curl -sS --fail -o "$DIR/copy" http://h2:8080/source
