# vsftpd on h2 as who runs the lab: passive and active transfers, both ways, by curl and by Python's ftplib.
mkdir -p ftp/in
random 3000000 ftp/file
chmod 755 ftp && chmod 777 ftp/in
cat >vsftpd.conf <<END
listen=YES
listen_port=2121
background=NO
run_as_launching_user=YES
anonymous_enable=YES
anon_root=$PWD/ftp
no_anon_password=YES
write_enable=YES
anon_upload_enable=YES
anon_umask=022
connect_from_port_20=NO
seccomp_sandbox=NO
xferlog_enable=NO
END
serve h2 vsftpd "$PWD/vsftpd.conf"
eventually listens h2 2121
curl -sS ftp://h2:2121/file | cmp - ftp/file && echo passive
curl -sS --ftp-port - ftp://h2:2121/file | cmp - ftp/file && echo active
curl -sS -T ftp/file ftp://h2:2121/in/sent && cmp ftp/file ftp/in/sent && echo sent
python3 - <<'END'
import ftplib
server = ftplib.FTP()
server.connect("h2", 2121, timeout=30)
server.login()
print("listed", sorted(server.nlst()), server.size("file") if not server.voidcmd("TYPE I").startswith("5") else "")
END
