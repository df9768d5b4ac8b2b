//! `sonde report serve` over raw sockets: its pages, what it refuses, slow clients, and that the store stays as it was.
//!
//! Model:   the stores are those of the corpus: `compared` has runs that ended, the run of `killed` never did.
//! Checked: by itself; the pages in a browser by web/test/pages.spec.ts.

use crate::lab::{skip, sonde};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server that never answers fails its test after so long.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A folder with a store of the corpus; none where it cannot be unpacked, or sonde has no page.
fn store(of: &str, name: &str) -> Option<PathBuf> {
    if Command::new("xz").arg("--version").output().is_err() {
        skip("xz, which unpacks the corpus");
        return None;
    }
    if sonde_report::policy().is_none() {
        skip("the report page, which is not built (web/dist/page.html)");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("serve-{name}"));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    let packed = format!("../../corpus/runs/{of}/sonde.db.xz");
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join(packed);
    let xz = Command::new("xz").arg("-dc").arg(packed).output().unwrap();
    assert!(xz.status.success(), "{xz:?}");
    fs::write(folder.join("sonde.db"), xz.stdout).unwrap();
    Some(folder)
}

/// What the command prints, with its exit code.
fn said(folder: &Path, words: &str) -> (i32, String) {
    let mut command = Command::new(sonde());
    let run = command.args(words.split(' ')).current_dir(folder).output();
    let output = run.unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.code().unwrap_or(-1), text)
}

/// The ids of the store's runs, the newest first.
fn ids(folder: &Path) -> Vec<String> {
    let (_, list) = said(folder, "report list --csv --out .");
    let lines = list.lines().skip(1);
    lines
        .filter_map(|line| Some(line.split(',').next()?.to_owned()))
        .collect()
}

/// A server that goes with its test.
struct Server {
    child: Child,
    /// As in `127.0.0.1:4711`.
    address: String,
}

impl Server {
    fn of(folder: &Path) -> Self {
        let mut command = Command::new(sonde());
        command.args(["report", "serve", "--out", "."]);
        command.current_dir(folder).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        printed.read_line(&mut line).unwrap();
        let address = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once('/'));
        let address = address.unwrap_or_else(|| panic!("{line}")).0.to_owned();
        Self { child, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// The head and the body of the answer to these bytes.
    fn sent(&self, request: &[u8]) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        answer(stream)
    }

    fn asked(&self, method: &str, target: &str, host: &str) -> (String, String) {
        self.sent(
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n").as_bytes(),
        )
    }

    fn get(&self, target: &str) -> (String, String) {
        self.asked("GET", target, &self.address)
    }

    /// The data of a page, and its head.
    fn page(&self, target: &str) -> (String, Value) {
        let (head, body) = self.get(target);
        assert_eq!(code(&head), 200, "{target}: {head}{body:.400}");
        let data = body.split_once("id=\"view\" data-served");
        let data = data.and_then(|(_, rest)| rest.split_once('>'));
        let data = data.and_then(|(_, rest)| rest.split_once("</script>"));
        (head, serde_json::from_str(data.unwrap().0).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn answer(mut stream: TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let parts = text.split_once("\r\n\r\n");
    let (head, body) = parts.unwrap_or_else(|| panic!("{text}"));
    (head.to_owned(), body.to_owned())
}

fn code(head: &str) -> u16 {
    let code = head
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    code.and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("{head}"))
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.split("\r\n").filter_map(|line| line.split_once(": "));
    fields.find(|(one, _)| *one == name).map(|(_, value)| value)
}

/// All files of a folder, with their bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn pages_are_served_and_the_store_stays_as_it_was() {
    let Some(folder) = store("compared", "pages") else {
        return;
    };
    let ids = ids(&folder);
    let (newest, before) = (&ids[0], &ids[1]);
    let was = files(&folder);
    let server = Server::of(&folder);
    let (head, list) = server.page("/");
    assert_eq!(list["schema"], "sonde-runs/1");
    let runs = list["runs"].as_array().unwrap();
    let listed: Vec<&str> = runs.iter().filter_map(|run| run["run"].as_str()).collect();
    assert_eq!(listed, ids);
    let policy = field(&head, "Content-Security-Policy").unwrap();
    let own = sonde_report::policy().unwrap();
    assert_eq!(policy, format!("{own}; frame-ancestors 'none'"));
    assert_eq!(field(&head, "X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(field(&head, "Referrer-Policy"), Some("no-referrer"));
    assert_eq!(field(&head, "Cache-Control"), Some("no-store"));
    assert_eq!(
        field(&head, "Cross-Origin-Resource-Policy"),
        Some("same-origin")
    );
    // A run by its id, by a part of it that no other begins with, and as the latest.
    let begin = (1..=newest.len()).map(|length| &newest[..length]);
    let own_begin = begin
        .into_iter()
        .find(|begin| ids.iter().filter(|id| id.starts_with(begin)).count() == 1);
    for text in [newest.as_str(), own_begin.unwrap(), "latest"] {
        let (head, view) = server.page(&format!("/runs/{text}"));
        assert_eq!(
            (&view["schema"], &view["run"]["id"]),
            (&"sonde-view/1".into(), &newest.as_str().into())
        );
        assert_eq!(field(&head, "Refresh"), None, "it has ended");
    }
    let (_, of_before) = server.page("/runs/latest~1");
    assert_eq!(of_before["run"]["id"], before.as_str());
    let (_, compared) = server.page(&format!("/compare?from={before}&to=latest"));
    assert_eq!(compared["schema"], "sonde-compare/1");
    assert_eq!(compared["comparison"]["run_a"], before.as_str());
    assert_eq!(compared["comparison"]["run_b"], newest.as_str());
    // The same as the command says.
    let mut command = Command::new(sonde());
    command.args([
        "report", "compare", before, "latest", "--json", "--out", ".",
    ]);
    let printed = command.current_dir(&folder).output().unwrap().stdout;
    let printed: Value = serde_json::from_slice(&printed).unwrap();
    let sentence = &compared["comparison"]["sentence"];
    assert!(sentence.is_string());
    assert_eq!(*sentence, printed["sentence"]);
    let (_, history) = server.page("/history");
    assert_eq!(history["schema"], "sonde-history/1");
    assert_eq!(
        history["history"]["runs"].as_array().unwrap().len(),
        ids.len()
    );
    let (head, _) = server.get("/history?name=nosuch");
    assert_eq!(code(&head), 404);
    // The head alone is that of the page.
    let (head, body) = server.asked("HEAD", "/", &server.address);
    let whole = server.get("/").1.len().to_string();
    assert_eq!(
        (code(&head), field(&head, "Content-Length"), body.as_str()),
        (200, Some(whole.as_str()), "")
    );
    drop(server);
    assert_eq!(files(&folder), was, "something was written");
}

#[test]
fn a_run_that_has_not_ended_comes_anew() {
    let Some(folder) = store("killed", "open") else {
        return;
    };
    let was = files(&folder);
    let server = Server::of(&folder);
    for target in ["/", "/runs/latest"] {
        let (head, body) = server.get(target);
        assert_eq!(
            (code(&head), field(&head, "Refresh")),
            (200, Some("10")),
            "{target}: {head}"
        );
        assert!(
            body.contains("id=\"view\" data-served data-refresh-s=\"10\">"),
            "{target}"
        );
    }
    drop(server);
    assert_eq!(files(&folder), was);
}

#[test]
fn what_is_not_for_this_server_is_refused() {
    let Some(folder) = store("compared", "refused") else {
        return;
    };
    let server = Server::of(&folder);
    let port = server.address.split_once(':').unwrap().1;
    for host in [
        &server.address,
        &format!("localhost:{port}"),
        &format!("[::1]:{port}"),
    ] {
        assert_eq!(code(&server.asked("GET", "/", host).0), 200, "{host}");
    }
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost",
        "127.0.0.1",
        &format!("127.0.0.2:{port}"),
    ] {
        let (head, body) = server.asked("GET", "/runs/latest", host);
        assert_eq!(code(&head), 403, "{host}");
        assert!(!body.contains("sonde-view"), "{host}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"] {
        let (head, _) = server.asked(method, "/", &server.address);
        assert_eq!(
            (code(&head), field(&head, "Allow")),
            (405, Some("GET, HEAD")),
            "{method}"
        );
    }
    // What a client sends behind the head does not cost it the answer.
    let body = "x".repeat(200_000);
    let posted = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 200000\r\n\r\n{body}",
        server.address
    );
    let mut stream = server.connect();
    drop(stream.write_all(posted.as_bytes()));
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 405");
    for target in [
        "/runs/nosuch",
        "/runs/",
        "/runs/..",
        "/runs/%2e%2e%2fsonde.db",
        "/runs/..%00",
        "/../sonde.db",
        "/sonde.db",
        "/etc/passwd",
        "//",
        "/compare",
        "/compare?from=latest",
        "/compare?from=nosuch&to=latest",
        "/favicon.ico",
    ] {
        let (head, body) = server.get(target);
        assert_eq!(code(&head), 404, "{target}: {body}");
        assert_eq!(
            field(&head, "Content-Type"),
            Some("text/plain; charset=utf-8")
        );
    }
    let (_, nearest) = server.get("/runs/nosuch");
    assert!(nearest.contains("there is no run nosuch"), "{nearest}");
    assert_eq!(code(&server.get("/runs/2").0), 404, "several begin so");
    assert_eq!(
        code(
            &server
                .get("/compare?from=latest~1&to=latest&ignore=colour")
                .0
        ),
        400
    );
    for bytes in [
        "\r\n\r\n\r\n\u{1}",
        "GET / HTTP/1.1\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: ADDRESS\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: ADDRESS\r\nHost: ADDRESS\r\n\r\n",
    ] {
        let (head, _) = server.sent(bytes.replace("ADDRESS", &server.address).as_bytes());
        assert_eq!(code(&head), 400, "{bytes:?}");
    }
    let long = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nX: {}",
        server.address,
        "x".repeat(20_000)
    );
    let mut stream = server.connect();
    drop(stream.write_all(long.as_bytes()));
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 431");
    // After all of this it still serves.
    assert_eq!(code(&server.get("/").0), 200);
}

#[test]
fn slow_clients_hold_up_nobody() {
    let Some(folder) = store("compared", "slow") else {
        return;
    };
    let server = Server::of(&folder);
    // More than it has room for: some never say anything, some stop in the midst of a head, some do not read what they asked for.
    let slow: Vec<TcpStream> = (0..96)
        .map(|number| {
            let mut stream = server.connect();
            let head = format!("GET /runs/latest HTTP/1.1\r\nHost: {}\r\n", server.address);
            let said = match number % 3 {
                0 => "",
                1 => &head,
                _ if number < 12 => &format!("{head}\r\n"),
                _ => "GET /",
            };
            drop(stream.write_all(said.as_bytes()));
            stream
        })
        .collect();
    for _ in 0..8 {
        assert_eq!(code(&server.get("/").0), 200);
    }
    // One that goes on is answered, and one that leaves is no matter.
    let mut late = server.connect();
    let head = format!("GET / HTTP/1.1\r\nHost: {}\r\n", server.address);
    late.write_all(head.as_bytes()).unwrap();
    let left = server.connect();
    left.shutdown(Shutdown::Both).unwrap();
    late.write_all(b"\r\n").unwrap();
    assert_eq!(code(&answer(late).0), 200);
    // Who asked and did not read has the answer still.
    let unread = slow.into_iter().nth(2).unwrap();
    assert_eq!(code(&answer(unread).0), 200);
}

#[test]
fn it_ends_by_a_signal_and_starts_nowhere_else() {
    let Some(folder) = store("compared", "ends") else {
        return;
    };
    let mut server = Server::of(&folder);
    assert_eq!(code(&server.get("/").0), 200);
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    for (words, wanted, part) in [
        (
            "report serve --out . --listen 0.0.0.0:8080",
            64,
            "ssh -L 8080:127.0.0.1:8080 HOST",
        ),
        (
            "report serve --out . --listen [::]:0",
            64,
            "is not a loopback address",
        ),
        (
            "report serve --out . --listen example.org:80",
            64,
            "write 127.0.0.1:8080",
        ),
        ("report serve --out nowhere", 2, "there is no store"),
    ] {
        let (code, text) = said(&folder, words);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            code == wanted && text.contains(part),
            "{words}: {code} {text}"
        );
    }
    let other = Server::of(&folder);
    let taken = format!("report serve --out . --listen {}", other.address);
    let (code, text) = said(&folder, &taken);
    assert!(
        code == 2 && text.contains("choose another port"),
        "{code} {text}"
    );
}

#[test]
fn a_comparison_and_a_history_are_files_too() {
    let Some(folder) = store("compared", "written") else {
        return;
    };
    for (words, file, schema) in [
        (
            "report compare latest~2 latest~1 --ignore congestion --out . --html c.html",
            "c.html",
            "sonde-compare/1",
        ),
        (
            "report history --out . --html h.html",
            "h.html",
            "sonde-history/1",
        ),
    ] {
        let (code, text) = said(&folder, words);
        assert!([0, 3].contains(&code), "{words}: {code} {text}");
        assert!(
            text.contains(&format!("sonde: the report is {file}")),
            "{text}"
        );
        let page = fs::read_to_string(folder.join(file)).unwrap();
        assert!(
            page.contains("id=\"view\">") && page.contains(schema),
            "{file}"
        );
    }
    let (code, text) = said(&folder, "report history --out . --html h.txt");
    assert!(code == 64 && text.contains("h.txt.html"), "{code} {text}");
}
