//! The account of a host's programs: a name for their uid, and a password entry that is not locked.
//!
//! Model:   programs keep the caller's ids, but root is shown as another user, whom the machine may not know or may have locked;
//!          and a directory service (LDAP) is out of reach of a host. Then the files of the machine get a line more, or one
//!          changed, in the host alone. Nobody can log in by a password that was not there before: `*` is none.
//! Source:  passwd(5), shadow(5); `allowed_user` of OpenSSH: without PAM an account is locked if its password begins with `!`.
//! Checked: `a_name_is_found_or_made`, `a_lock_is_taken_off`; `ssh_goes_from_host_to_host` of the command.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use crate::config::User;

/// Of a user whom neither the machine nor the environment names.
const NAMELESS: &str = "lab-user";

/// The name of `user`, and the text of /etc/passwd with it, where it was not in it. `caller` is what the environment calls who
/// started the lab, the likeliest first.
pub(crate) fn named(
    passwd: &str,
    user: User,
    caller: &[Option<String>],
) -> (String, Option<String>) {
    let entries = || passwd.lines().map(|line| line.split(':'));
    let uid = user.uid.to_string();
    let known = entries().find(|entry| entry.clone().nth(2) == Some(&*uid));
    if let Some(name) = known.and_then(|mut entry| entry.next()) {
        return (name.to_owned(), None);
    }
    let is_free = |name: &str| entries().all(|mut entry| entry.next() != Some(name));
    let is_name = |name: &&String| {
        let first = name.bytes().next();
        first.is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    let named = caller.iter().flatten().filter(is_name);
    let name = named.map(|name| &**name).find(|name| is_free(name));
    let name = name.unwrap_or(NAMELESS);
    let end = if passwd.ends_with('\n') || passwd.is_empty() {
        ""
    } else {
        "\n"
    };
    let (uid, gid) = (user.uid, user.gid);
    let text = format!("{passwd}{end}{name}:x:{uid}:{gid}::/tmp:/bin/sh\n");
    (name.to_owned(), Some(text))
}

/// The text of /etc/shadow in which `name` has no password, where it is locked or not listed; none where nothing is to change.
pub(crate) fn unlocked(shadow: &str, name: &str) -> Option<String> {
    let mut found = false;
    let mut text = String::with_capacity(shadow.len().saturating_add(32));
    let mut changed = false;
    for line in shadow.lines() {
        let mut fields: Vec<_> = line.split(':').collect();
        if let [who, password, ..] = &mut fields[..] {
            if *who == name {
                found = true;
                if password.starts_with('!') {
                    (*password, changed) = ("*", true);
                }
            }
        }
        text += &fields.join(":");
        text.push('\n');
    }
    if !found {
        text += &format!("{name}:*:::::::\n");
    }
    (changed || !found).then_some(text)
}

/// The text of an /etc/shadow in which nobody of `passwd` has a password, nor is locked: for a lab whose root may not read the
/// machine's, as an sshd takes everybody for locked then.
pub(crate) fn without_passwords(passwd: &str) -> String {
    let name = |line: &str| Some(line.split_once(':')?.0.to_owned());
    let names = passwd.lines().filter_map(name);
    names.map(|name| format!("{name}:*:::::::\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/bash\n";

    fn user(uid: u32) -> User {
        User {
            uid,
            gid: uid + 1,
            behind: (0, 0),
        }
    }

    #[test]
    fn a_name_is_found_or_made() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(named(PASSWD, user(1_000), &[]), ("me".into(), None));
        for (caller, name) in [
            (vec![some("alice"), some("bob")], "alice"),
            // A name of another, and what is not a name.
            (vec![None, some("root"), some("b.ob")], "b.ob"),
            (vec![some("a:b"), some(""), some("me")], NAMELESS),
        ] {
            let (got, text) = named(PASSWD, user(2_001), &caller);
            let line = format!("{name}:x:2001:2002::/tmp:/bin/sh\n");
            assert_eq!((&*got, text), (name, Some(format!("{PASSWD}{line}"))));
        }
        let (_, text) = named("root:x:0:0::/:/bin/sh", user(5), &[]);
        assert!(
            text.unwrap()
                .starts_with("root:x:0:0::/:/bin/sh\nlab-user:x:5:6:")
        );
    }

    #[test]
    fn a_lock_is_taken_off() {
        let shadow = "root:$y$hash:19000:0:99999:7:::\nme:!:19000:0:99999:7:::\nyou:*:1::::::\n";
        assert_eq!(
            unlocked(shadow, "me").unwrap(),
            shadow.replace("me:!:", "me:*:")
        );
        // Who has a password keeps it, locked passwords of others stay so, and who is not listed is.
        assert_eq!(unlocked(shadow, "root"), None);
        assert_eq!(unlocked(shadow, "you"), None);
        assert_eq!(without_passwords(PASSWD), "root:*:::::::\nme:*:::::::\n");
        let added = unlocked(shadow, "she").unwrap();
        assert_eq!(added, format!("{shadow}she:*:::::::\n"));
    }
}
