# rsync between hosts by its own daemon and by the lab's remote shell: all arrives, and a second time nothing is sent.
mkdir -p tree/below at
for number in 1 2 3 4 5; do random 700000 tree/below/$number; done
ln -s below/1 tree/link
chmod 640 tree/below/2
touch -d 1999-12-31 tree/below/3
cat >rsyncd.conf <<END
use chroot = no
munge symlinks = no
[files]
path = $PWD/at
read only = no
END
serve h2 rsync --daemon --no-detach --port 8730 --config "$PWD/rsyncd.conf"
eventually listens h2 8730
same() { diff -r tree "$1" && [ "$(stat -c '%a %Y' tree/below/[23])" = "$(stat -c '%a %Y' "$1"/below/[23])" ]; }
sent() { rsync -a --stats "$@" | grep 'regular files transferred'; }
sent tree/ rsync://h2:8730/files/ && same at && echo same
sent tree/ rsync://h2:8730/files/
# A changed byte goes as a difference.
printf x | dd of=tree/below/4 bs=1 seek=350000 conv=notrunc status=none
touch -d 2001-01-01 tree/below/4
rsync -a --no-whole-file --stats tree/ rsync://h2:8730/files/ | grep 'Literal data' | tr -d , | awk '{ print ($3 < 10000 ? "difference" : "all of it") }'
same at && echo same
rsync -a -e /run/sonde/bin/rsh tree/ "h3:$PWD/back/" && same back && echo same
