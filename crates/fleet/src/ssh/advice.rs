//! What to do about what ssh said.
//!
//! Source:  the messages of OpenSSH 7.6 to 9.9, which are not translated.
//! Checked: `known_messages_have_a_remedy`; the tests with real servers.

/// What a message of ssh contains, and the remedy; the first that fits is taken.
const REMEDIES: [(&str, &str); 15] = [
    (
        "IDENTIFICATION HAS CHANGED",
        "its key is another than the one known: find out why, then `ssh-keygen -R HOST`",
    ),
    (
        "Host key verification failed",
        "its key is not known: log in once with `ssh HOST` and compare the key, or add it to known_hosts",
    ),
    (
        "Permission denied",
        "no password is asked for: load a key into ssh-agent, and let the host accept it with `ssh-copy-id HOST`",
    ),
    (
        "Too many authentication failures",
        "name the right key with IdentityFile and IdentitiesOnly in ~/.ssh/config",
    ),
    (
        "Could not resolve hostname",
        "check the name, or give it a HostName in ~/.ssh/config",
    ),
    (
        "Name or service not known",
        "check the name, or give it a HostName in ~/.ssh/config",
    ),
    (
        "Connection refused",
        "no ssh server answers at that port: start one, or give the port as in HOST:2222",
    ),
    (
        "No route to host",
        "check that the host is up, and the network between",
    ),
    (
        "Network is unreachable",
        "check the route to the host: `ip route get ADDRESS`",
    ),
    (
        "timed out",
        "check that the host is up and that no firewall drops ssh",
    ),
    (
        "not responding",
        "the host stopped answering: look whether it is up, then `--resume`",
    ),
    (
        "Bad owner or permissions",
        "correct the owner or mode of the file that ssh names",
    ),
    (
        "Bad configuration option",
        "correct ~/.ssh/config, or update ssh: 7.6 or newer is needed",
    ),
    (
        "no matching",
        "the two ends share no algorithm: see what `ssh -v HOST` says",
    ),
    (
        "closed by",
        "the host closed the connection: see what `ssh -v HOST` says",
    ),
];

/// The remedy for what ssh wrote about `destination`.
pub(crate) fn remedy(said: &str, destination: &str) -> String {
    let known = REMEDIES.iter().find(|(part, _)| said.contains(part));
    known.map_or_else(
        || format!("see whether `ssh {destination} true` works"),
        |(_, remedy)| remedy.replace("HOST", destination),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_messages_have_a_remedy() {
        for (said, part) in [
            (
                "No ED25519 host key is known for 10.9.0.2 and you have requested strict checking.\nHost key verification failed.",
                "log in once with `ssh root@b`",
            ),
            (
                "root@10.9.0.2: Permission denied (publickey).",
                "ssh-copy-id root@b",
            ),
            (
                "ssh: Could not resolve hostname nosuch: Name or service not known",
                "HostName",
            ),
            (
                "ssh: connect to host 10.9.0.2 port 22: Connection refused",
                "no ssh server answers",
            ),
            (
                "Timeout, server 10.9.0.2 not responding.",
                "stopped answering",
            ),
            ("something new", "see whether `ssh root@b true` works"),
        ] {
            let remedy = remedy(said, "root@b");
            assert!(remedy.contains(part), "{said}: {remedy}");
        }
    }
}
