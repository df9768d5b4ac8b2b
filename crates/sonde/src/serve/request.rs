//! A request: what it asks for, or why it is refused.
//!
//! Model:   the head is read by `httparse`, and of it the method, the target and two fields are used. Host must be the address that is
//!          listened at, or a loopback name with its port: a page of another site whose name was made to lead here names itself. What a
//!          browser says that it fetches must be a document: these pages have no parts, so that a part is wanted by another site.
//!          No part of a target is ever the name of a file.
//! Source:  RFC 9110 §7.2, §9.1; RFC 9112 §3; W3C Fetch Metadata §2.1. Deviations: a body is not read, and of targets only the origin form is taken.
//! Checked: `targets_lead_to_pages`, `what_is_no_request_is_refused`, `only_its_own_hosts_are_answered`; `tests/serve.rs`; the fuzz target
//!          `requests`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use httparse::{EMPTY_HEADER, Error, Status};
use percent_encoding::percent_decode_str;

/// The longest head that is read.
pub const HEAD_BYTES_MAX: usize = 8 * 1_024;
/// The most fields of a head.
const FIELDS_MAX: usize = 64;
/// The port that no address of HTTP names.
const USUAL_PORT: u16 = 80;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The list of runs.
    Runs,
    /// A run, by what `sonde report show` takes.
    Run(String),
    /// Two runs side by side.
    Compare {
        /// The baseline.
        from: String,
        /// The run that is compared with it.
        to: String,
        /// Factors in which they may differ.
        ignore: BTreeSet<String>,
    },
    /// The history of the runs of a name, or of all.
    History {
        /// The name.
        name: Option<String>,
    },
}

/// A request that is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it asks for.
    pub place: Place,
    /// Whether only the head of the answer is wanted.
    pub is_head: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is not a request of HTTP, or one of another form.
    Malformed,
    /// It names another host, or a page of one wants it.
    Foreign,
    /// There is no such page.
    Absent,
    /// It would change something.
    Method,
    /// Its head is too long.
    Long,
}

/// The hosts that a request may name.
#[derive(Debug)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Of a server that listens here.
    pub fn of(address: SocketAddr) -> Self {
        let port = address.port();
        let own = match address {
            SocketAddr::V4(own) => own.ip().to_string(),
            SocketAddr::V6(own) => format!("[{}]", own.ip()),
        };
        let names = [own, "localhost".into(), "127.0.0.1".into(), "[::1]".into()];
        let mut all: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        if port == USUAL_PORT {
            all.extend(names);
        }
        Self(all)
    }

    fn has(&self, named: &[u8]) -> bool {
        let is_named = |own: &String| own.as_bytes().eq_ignore_ascii_case(named);
        self.0.iter().any(is_named)
    }
}

/// What these bytes ask for; `None` where the head goes on.
///
/// # Errors
/// Why it is refused.
pub fn parse(bytes: &[u8], hosts: &Hosts) -> Result<Option<Request>, Refused> {
    let mut fields = [EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    match head.parse(bytes) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => return Err(Refused::Long),
        Err(_) => return Err(Refused::Malformed),
    }
    let of = |name: &'static str| {
        let fields = head.headers.iter();
        let named = fields.filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value)
    };
    let mut named = of("host");
    match (named.next(), named.next()) {
        (Some(host), None) if hosts.has(host) => {}
        (Some(_), None) => return Err(Refused::Foreign),
        _ => return Err(Refused::Malformed),
    }
    if of("sec-fetch-dest").any(|fetched| fetched != b"document") {
        return Err(Refused::Foreign);
    }
    let is_head = match head.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err(Refused::Method),
    };
    let target = head.path.filter(|target| target.starts_with('/'));
    let place = place(target.ok_or(Refused::Malformed)?)?;
    Ok(Some(Request { place, is_head }))
}

/// What a target in its origin form is.
fn place(target: &str) -> Result<Place, Refused> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let asked = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| value.into_owned())
    };
    match path {
        "/" => Ok(Place::Runs),
        "/history" => Ok(Place::History {
            name: asked("name"),
        }),
        "/compare" => Ok(Place::Compare {
            from: asked("from").ok_or(Refused::Absent)?,
            to: asked("to").ok_or(Refused::Absent)?,
            ignore: asked("ignore")
                .map(|all| all.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
        }),
        _ => {
            let run = path.strip_prefix("/runs/").unwrap_or_default();
            let run = Some(run).filter(|run| !run.is_empty() && !run.contains('/'));
            let run = run.and_then(|run| percent_decode_str(run).decode_utf8().ok());
            Ok(Place::Run(run.ok_or(Refused::Absent)?.into_owned()))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn hosts(address: &str) -> Hosts {
        Hosts::of(address.parse().unwrap())
    }

    fn asked(head: &str) -> Result<Option<Request>, Refused> {
        parse(head.as_bytes(), &hosts("127.0.0.1:8080"))
    }

    fn get(target: &str) -> Result<Place, Refused> {
        let head = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n");
        asked(&head).map(|request| request.unwrap().place)
    }

    #[test]
    fn targets_lead_to_pages() {
        let run = |name: &str| Ok(Place::Run(name.into()));
        assert_eq!(get("/"), Ok(Place::Runs));
        assert_eq!(get("/?from=x"), Ok(Place::Runs));
        assert_eq!(get("/runs/latest"), run("latest"));
        assert_eq!(get("/runs/latest~1?x"), run("latest~1"));
        assert_eq!(get("/runs/before%20the%20change"), run("before the change"));
        assert_eq!(get("/runs/%C3%A4"), run("ä"));
        // They are names of runs, and there is none of such a name.
        assert_eq!(get("/runs/.."), run(".."));
        assert_eq!(get("/runs/%2e%2e%2fsonde.db"), run("../sonde.db"));
        assert_eq!(get("/runs/a%zz"), run("a%zz"));
        let compare = |from: &str, to: &str, ignore: &[&str]| {
            Ok(Place::Compare {
                from: from.into(),
                to: to.into(),
                ignore: ignore.iter().map(|one| (*one).into()).collect(),
            })
        };
        assert_eq!(get("/compare?from=a&to=b"), compare("a", "b", &[]));
        assert_eq!(
            get("/compare?to=b+c&from=%61&ignore=network,profile"),
            compare("a", "b c", &["network", "profile"])
        );
        let history = |name: Option<&str>| {
            let name = name.map(Into::into);
            Ok(Place::History { name })
        };
        assert_eq!(get("/history"), history(None));
        assert_eq!(get("/history?name="), history(None));
        assert_eq!(get("/history?name=nightly"), history(Some("nightly")));
        for nowhere in [
            "/runs",
            "/runs/",
            "/runs/a/b",
            "/runs/../runs",
            "/runs/%ff",
            "//",
            "/index.html",
            "/sonde.db",
            "/../sonde.db",
            "/compare",
            "/compare?from=a",
            "/favicon.ico",
        ] {
            assert_eq!(get(nowhere), Err(Refused::Absent), "{nowhere}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let whole = "HEAD / HTTP/1.1\r\nhost: localhost:8080\r\n\r\n";
        let request = Request {
            place: Place::Runs,
            is_head: true,
        };
        assert_eq!(asked(whole), Ok(Some(request)));
        for until in 0..whole.len() {
            let part = whole.get(..until).unwrap();
            assert_eq!(asked(part), Ok(None), "{part}");
        }
        let with = |line: &str| asked(&format!("{line}\r\nHost: localhost:8080\r\n\r\n"));
        for line in [
            "GET http://localhost:8080/ HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "GET localhost HTTP/1.1",
            "GET /",
            "GET / HTTP/2.0",
            "\u{1}",
        ] {
            let refused = with(line).unwrap_err();
            let is_right = matches!(refused, Refused::Malformed | Refused::Method);
            assert!(is_right, "{line}: {refused:?}");
        }
        for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "BREW"] {
            let line = format!("{method} / HTTP/1.1");
            assert_eq!(with(&line), Err(Refused::Method), "{method}");
        }
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD_BYTES_MAX));
        assert_eq!(asked(&long), Err(Refused::Long));
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(FIELDS_MAX + 1)
        );
        assert_eq!(asked(&many), Err(Refused::Long));
    }

    #[test]
    fn only_its_own_hosts_are_answered() {
        let named = |address: &str, fields: &str| {
            let head = format!("GET / HTTP/1.1\r\n{fields}\r\n");
            parse(head.as_bytes(), &hosts(address)).map(drop)
        };
        for host in [
            "127.0.0.1:8080",
            "localhost:8080",
            "LocalHost:8080",
            "[::1]:8080",
        ] {
            assert_eq!(
                named("127.0.0.1:8080", &format!("Host: {host}\r\n")),
                Ok(())
            );
        }
        assert_eq!(named("127.9.9.9:8080", "Host: 127.9.9.9:8080\r\n"), Ok(()));
        assert_eq!(named("127.0.0.1:80", "Host: localhost\r\n"), Ok(()));
        assert_eq!(named("[::1]:80", "Host: [::1]\r\n"), Ok(()));
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost",
            "localhost:8081",
            "127.0.0.1:8080.evil.example",
            "127.9.9.9:8080",
            "localhost.:8080",
            "user@localhost:8080",
            "",
        ] {
            let found = named("127.0.0.1:8080", &format!("Host: {host}\r\n"));
            assert_eq!(found, Err(Refused::Foreign), "{host}");
        }
        let twice = "Host: localhost:8080\r\nHost: evil.example\r\n";
        assert_eq!(named("127.0.0.1:8080", twice), Err(Refused::Malformed));
        assert_eq!(named("127.0.0.1:8080", ""), Err(Refused::Malformed));
        for (fetched, wanted) in [
            ("document", Ok(())),
            ("image", Err(Refused::Foreign)),
            ("iframe", Err(Refused::Foreign)),
            ("empty", Err(Refused::Foreign)),
        ] {
            let fields = format!("Host: localhost:8080\r\nSec-Fetch-Dest: {fetched}\r\n");
            assert_eq!(named("127.0.0.1:8080", &fields), wanted, "{fetched}");
        }
    }
}
