//! Independent partners: curl and lftp against the server here, and the client here against vsftpd, byte for byte, binary and text.
//!
//! Model:   what is not installed says `skipped:`. vsftpd serves one connection on its standard input and output, which this test
//!          hands it, so that no daemon is started.

use crate::files_partners::{Scratch, has, run, succeeds};
use crate::files_sockets::LOOPBACK;
use crate::ftp_sockets::{BINARY, reach, start, there_and_back};
use sonde_measure::files::{Representation, Translation};
use sonde_workload::files::ftp::client::Client;
use sonde_workload::files::pattern;
use sonde_workload::files::store::Folder;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::Command;

const SIZE: usize = 1_000_003;

fn exported(scratch: &Scratch) -> Folder {
    let exported = scratch.path("exported");
    std::fs::create_dir(&exported).unwrap();
    Folder::open(exported.as_ref(), false).unwrap()
}

#[test]
fn curl_gets_and_puts_here() {
    if !has("curl") {
        return;
    }
    let scratch = Scratch::new("curl");
    let content = pattern::piece(77, SIZE);
    std::fs::write(scratch.path("local"), content).unwrap();
    let running = start(exported(&scratch), None, "secret", BINARY);
    let url = format!("ftp://anonymous:secret@{}", running.address);
    let [local, back, stored] = ["local", "back", "exported/stored"].map(|name| scratch.path(name));
    let file = format!("{url}/stored");
    // Passive by EPSV and PASV, active by EPRT and PORT.
    for way in [
        &[][..],
        &["--disable-epsv"],
        &["-P", "-"],
        &["-P", "-", "--disable-eprt"],
    ] {
        let put = [&["curl", "-sS", "-T", &local, &file], way].concat();
        succeeds(&put);
        assert!(std::fs::read(&stored).unwrap() == content, "{way:?}");
        let get = [&["curl", "-sS", "-o", &back, &file], way].concat();
        succeeds(&get);
        assert!(std::fs::read(&back).unwrap() == content, "{way:?}");
        std::fs::remove_file(&back).unwrap();
    }
    let listed = succeeds(&["curl", "-sS", &format!("{url}/")]);
    assert!(
        listed.contains(&format!("{SIZE} Jan 01 1970 stored")),
        "{listed}"
    );
    // As text: curl puts in and takes out what ends of lines have more on the way.
    let lines = pattern::text(5, SIZE);
    std::fs::write(&stored, lines).unwrap();
    succeeds(&["curl", "-sS", "-B", "-o", &back, &file]);
    assert!(std::fs::read(&back).unwrap() == lines);
    std::fs::remove_file(&stored).unwrap();
    succeeds(&["curl", "-sS", "-B", "-T", &back, &file]);
    assert!(std::fs::read(&stored).unwrap() == lines);
    let wrong = format!("ftp://anonymous:guess@{}/stored", running.address);
    assert_eq!(run(&["curl", "-sS", &wrong]).status.code(), Some(67));
}

#[test]
fn lftp_gets_and_puts_here() {
    if !has("lftp") {
        return;
    }
    let scratch = Scratch::new("lftp");
    let content = pattern::piece(78, SIZE);
    std::fs::write(scratch.path("local"), content).unwrap();
    let running = start(exported(&scratch), None, "secret", BINARY);
    let [local, back, stored] = ["local", "back", "exported/stored"].map(|name| scratch.path(name));
    let server = format!("ftp://{}", running.address);
    let script = |work: &str| {
        let settings = "set net:max-retries 1; set net:timeout 10; set cmd:fail-exit yes";
        let script = format!("{settings}; open -u anonymous,secret {server}; {work}; bye");
        succeeds(&["lftp", "-f", "/dev/null", "-c", &script])
    };
    let listed = script(&format!(
        "put {local} -o stored; get stored -o {back}; ls; nlist"
    ));
    assert!(std::fs::read(&stored).unwrap() == content);
    assert!(std::fs::read(&back).unwrap() == content);
    assert!(listed.contains("stored"), "{listed}");
    let lines = pattern::text(5, SIZE);
    std::fs::write(&local, lines).unwrap();
    std::fs::remove_file(&back).unwrap();
    script(&format!(
        "put -a {local} -o text; get -a text -o {back}; rm text"
    ));
    assert!(std::fs::read(&back).unwrap() == lines);
    assert!(!std::path::Path::new(&scratch.path("exported/text")).exists());
}

/// Of one connection: the configuration must be of who runs it.
const VSFTPD: &str = "listen=NO
background=NO
seccomp_sandbox=NO
anonymous_enable=YES
no_anon_password=NO
anon_upload_enable=YES
anon_other_write_enable=YES
write_enable=YES
anon_umask=022
ascii_upload_enable=YES
ascii_download_enable=YES
connect_from_port_20=NO
xferlog_enable=NO
run_as_launching_user=YES
";

#[test]
fn the_client_here_gets_and_puts_at_vsftpd() {
    if !has("vsftpd") {
        return;
    }
    let scratch = Scratch::new("vsftpd");
    let root = scratch.path("root");
    // The root itself must not be writable for vsftpd to serve it.
    std::fs::create_dir_all(scratch.path("root/in")).unwrap();
    std::fs::create_dir(scratch.path("empty")).unwrap();
    let conf = scratch.path("conf");
    let empty = scratch.path("empty");
    let user = succeeds(&["id", "-un"]);
    let user = user.trim();
    let own = format!(
        "anon_root={root}\nsecure_chroot_dir={empty}\nnopriv_user={user}\nftp_username={user}\nallow_writeable_chroot=YES\n"
    );
    std::fs::write(&conf, VSFTPD.to_owned() + &own).unwrap();
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let [input, output] = [stream.try_clone().unwrap(), stream].map(OwnedFd::from);
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let mut vsftpd = Command::new("vsftpd");
        vsftpd
            .arg(&conf)
            .env("PATH", path)
            .stdin(input)
            .stdout(output);
        vsftpd.status()
    });
    let opened = Client::open(reach(address, "me@here"));
    let mut client = match opened {
        Ok(client) => client,
        Err(error) => {
            println!("skipped: vsftpd does not serve here: {error}");
            return;
        }
    };
    let binary = pattern::piece(9, SIZE);
    assert!(there_and_back(&mut client, "in/binary", binary, BINARY) == binary);
    assert!(std::fs::read(scratch.path("root/in/binary")).unwrap() == binary);
    assert_eq!(client.size("in/binary").unwrap(), SIZE as u64);
    for translation in [Translation::Character, Translation::Block] {
        let text = pattern::text(9, SIZE);
        let by = (Representation::Ascii, translation);
        assert!(there_and_back(&mut client, "in/text", text, by) == text);
        assert!(std::fs::read(scratch.path("root/in/text")).unwrap() == text);
        std::fs::remove_file(scratch.path("root/in/text")).unwrap();
    }
    client.quit().unwrap();
    drop(serving.join().unwrap());
}
