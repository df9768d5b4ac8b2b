//! An answer as it goes out.
//!
//! Model:   every answer forbids the browser to keep it, to guess its type, to frame it, to hand it to another site and to tell where a
//!          link was followed. A page has the policy that stands in it, an error one that allows nothing. No part of a request stands in
//!          a field.
//! Source:  RFC 9110 §15; RFC 9111 §5.2.2.5; W3C Content Security Policy 3 §6.4.2. Deviations: none. `Refresh` is of the HTML Living
//!          Standard §7.8.
//! Checked: `a_page_has_its_fields`, `a_head_alone_says_how_long_it_would_be`.

use super::request::Refused;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// A page.
    Ok,
    /// It was not understood.
    Malformed,
    /// It is not for this host.
    Forbidden,
    /// There is no such page or run.
    Absent,
    /// It would change something.
    Method,
    /// Its head is too long.
    Long,
    /// The page could not be made.
    Failed,
    /// It cannot be made now.
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::Malformed => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::Absent => "404 Not Found",
            Self::Method => "405 Method Not Allowed",
            Self::Long => "431 Request Header Fields Too Large",
            Self::Failed => "500 Internal Server Error",
            Self::Unavailable => "503 Service Unavailable",
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What became of the request.
    pub status: Status,
    /// The page, or a sentence.
    pub body: String,
    /// After so many seconds the browser asks again.
    pub refresh_s: Option<u32>,
}

impl Reply {
    /// A page.
    pub fn page(body: String, refresh_s: Option<u32>) -> Self {
        Self {
            status: Status::Ok,
            body,
            refresh_s,
        }
    }

    /// A sentence that says why there is none.
    pub fn error(status: Status, why: impl std::fmt::Display) -> Self {
        Self {
            status,
            body: format!("{why}\n"),
            refresh_s: None,
        }
    }

    /// The bytes; `policy` is that of the page.
    pub fn bytes(&self, policy: &str, is_head: bool) -> Vec<u8> {
        let (kind, policy) = match self.status {
            Status::Ok => ("text/html", policy),
            _ => ("text/plain", "default-src 'none'"),
        };
        let mut text = format!(
            "HTTP/1.1 {}\r\n\
             Content-Type: {kind}; charset=utf-8\r\n\
             Content-Length: {}\r\n\
             Content-Security-Policy: {policy}; frame-ancestors 'none'\r\n\
             X-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\n\
             Cache-Control: no-store\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Connection: close\r\n",
            self.status.line(),
            self.body.len()
        );
        if let Some(seconds) = self.refresh_s {
            text += &format!("Refresh: {seconds}\r\n");
        }
        if self.status == Status::Method {
            text += "Allow: GET, HEAD\r\n";
        }
        text += "\r\n";
        if !is_head {
            text += &self.body;
        }
        text.into_bytes()
    }
}

impl From<Refused> for Reply {
    fn from(refused: Refused) -> Self {
        let (status, why) = match refused {
            Refused::Malformed => (Status::Malformed, "This is not a request for a page."),
            Refused::Foreign => (
                Status::Forbidden,
                "This server answers only to the address that it listens at, and to no page of another: open that one.",
            ),
            Refused::Absent => (
                Status::Absent,
                "There is no such page: / lists the runs, and leads to the others.",
            ),
            Refused::Method => (Status::Method, "Pages are read here, by GET and HEAD."),
            Refused::Long => (Status::Long, "The head of the request is too long."),
        };
        Self::error(status, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reply: &Reply, is_head: bool) -> String {
        String::from_utf8(reply.bytes("default-src 'none'; script-src 'sha256-x'", is_head))
            .unwrap()
    }

    #[test]
    fn a_page_has_its_fields() {
        let page = text(&Reply::page("<p>ä".into(), Some(10)), false);
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "<p>ä");
        for line in [
            "HTTP/1.1 200 OK",
            "Content-Type: text/html; charset=utf-8",
            "Content-Length: 5",
            "Content-Security-Policy: default-src 'none'; script-src 'sha256-x'; frame-ancestors 'none'",
            "X-Content-Type-Options: nosniff",
            "Referrer-Policy: no-referrer",
            "Cache-Control: no-store",
            "Cross-Origin-Resource-Policy: same-origin",
            "Connection: close",
            "Refresh: 10",
        ] {
            assert!(head.split("\r\n").any(|one| one == line), "{line}: {head}");
        }
        let refused = text(&Refused::Method.into(), false);
        assert!(refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
        assert!(refused.contains("\r\nAllow: GET, HEAD\r\n"), "{refused}");
        assert!(refused.contains("text/plain") && !refused.contains("script-src"));
        assert!(!refused.contains("Refresh"), "{refused}");
    }

    #[test]
    fn a_head_alone_says_how_long_it_would_be() {
        let reply = Reply::page("12345".into(), None);
        let (whole, head) = (text(&reply, false), text(&reply, true));
        assert_eq!(whole, head.clone() + "12345");
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"));
    }
}
