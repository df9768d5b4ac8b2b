//! Ordinary programs between the hosts of a lab, unmodified and by scripts: servers and their clients, and tools of networks.
//!
//! Model:   `tests/ordinary/NAME.sh` runs by bash on h1 of three hosts, after `begin.sh`, in a folder that all hosts see. It prints what
//!          its test expects, nothing else, and ends with 0; the lab loses no frame outside of its model. All are of the long tier
//!          but three, which run everywhere.

use crate::lab::{
    Case, Stage, assert_attachment_lost_nothing, crossed, has, is_long, is_root, report, skip,
};
use std::path::Path;

/// Goes before each script.
const BEGIN: &str = include_str!("ordinary/begin.sh");

/// A script and what it needs.
#[derive(Clone, Copy, Debug)]
struct Script {
    /// Of the file, without `.sh`.
    name: &'static str,
    text: &'static str,
    needs: &'static [&'static str],
    /// Of the lab.
    options: &'static [&'static str],
    /// The site of the three hosts, in place of a network.
    site: Option<&'static str>,
    /// What it prints.
    prints: &'static str,
}

/// Three subnets in a row with a host each, and routers of the model between.
const ROUTED: &str = r#"name = "routed"
summary = "three subnets in a row"
segment = [
    { name = "a", network = "fddi", hosts = ["h1"] },
    { name = "b", network = "ethernet-100", hosts = ["h2"] },
    { name = "c", network = "ethernet-100", hosts = ["h3"] },
]
router = [{ name = "r1", joins = ["a", "b"] }, { name = "r2", joins = ["b", "c"] }]
"#;

/// Two subnets, between which h2 sends on.
const GATEWAY: &str = r#"name = "gateway"
summary = "a host between two subnets"
segment = [
    { name = "near", network = "ethernet-100", hosts = ["h1", "h2"] },
    { name = "far", network = "ethernet-100", hosts = ["h2", "h3"] },
]
router = [{ name = "h2", joins = ["near", "far"], by = "host" }]
"#;

/// The script of a name, for the lab's programs.
macro_rules! script {
    ($name:literal, $needs:expr, $prints:expr) => {
        Script {
            name: $name,
            text: include_str!(concat!("ordinary/", $name, ".sh")),
            needs: $needs,
            options: &[],
            site: None,
            prints: $prints,
        }
    };
}

impl Script {
    /// As the lab's root.
    const fn as_root(mut self) -> Self {
        self.options = &["--root"];
        self
    }

    /// Over this site.
    const fn over(mut self, site: &'static str) -> Self {
        self.site = Some(site);
        self
    }

    /// Whether all that it needs is there; all that is missing is told.
    fn is_possible(&self) -> bool {
        self.needs.iter().filter(|program| !has(program)).count() == 0
    }

    /// Runs it in this case; `more` is set for it.
    fn run(&self, case: Case, more: &[(&str, &str)]) {
        let stage = Stage::new(case);
        let written = stage.path("report");
        let file = stage.path("site.toml");
        let network = match self.site {
            Some(site) => {
                std::fs::write(&file, site).unwrap();
                ["--site", &file].to_vec()
            }
            None => ["--hosts", "3", "--network", "ethernet-100"].to_vec(),
        };
        let lab = [&network[..], &["--report", &written]].concat();
        let text = format!("{BEGIN}{}", self.text);
        let options = [&lab[..], self.options].concat();
        let mut call = stage.run(&options, &["bash", "-c", &text, self.name]);
        for (name, value) in more {
            call = call.env(name, value);
        }
        let call = call.env("SUDO_UID", "").env("SUDO_GID", "").limit(300);
        let outcome = call.expect(0);
        println!("{} {case:?}: {:?}", self.name, outcome.took);
        assert_eq!(outcome.out, self.prints, "{case:?} {outcome}");
        assert_attachment_lost_nothing(&report(&written));
    }

    /// Runs it with each attachment and each user once.
    fn run_crossed(&self) {
        if self.is_possible() {
            crossed().into_iter().for_each(|case| self.run(case, &[]));
        }
    }

    /// As [`run_crossed`](Self::run_crossed), in the long tier.
    fn run_long(&self) {
        if is_wanted() {
            self.run_crossed();
        }
    }

    /// In root's own lab, which has other users, in the long tier.
    fn run_long_of_root(&self, more: &[(&str, &str)]) {
        if !is_wanted() || !self.is_possible() {
            return;
        }
        if !is_root() {
            skip("root, whose lab has other users");
            return;
        }
        for case in crossed().into_iter().filter(|case| !case.is_user) {
            self.run(case, more);
        }
    }
}

fn is_wanted() -> bool {
    is_long() || skip("ordinary programs: make test-long")
}

#[test]
fn python_serves_files() {
    script!("python", &["python3"], "h1 3000000 True\nh3 3000000 True\n").run_crossed();
}

#[test]
fn node_serves_requests() {
    script!("node", &["node"], "right 10\n").run_crossed();
}

#[test]
fn nginx_serves_files() {
    let prints = "fetched\nfetched\nfetched\nfetched\nfetched\nfetched\nfetched\n404\n";
    script!("nginx", &["nginx", "curl"], prints).run_long();
}

#[test]
fn redis_keeps_values() {
    let needs = &["redis-server", "redis-cli", "redis-benchmark"];
    script!("redis", needs, "OK\nsame\n999\n1000\nSET\nGET\nLPUSH\n").run_long();
}

#[test]
fn postgres_keeps_tables_and_replicates() {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let mut folders = versions.into_iter().flatten().filter_map(Result::ok);
    let is_debian = folders.any(|version| version.path().join("bin/initdb").is_file());
    if !is_debian && !has("initdb") {
        return;
    }
    let prints = "2666866670000
number of transactions actually processed: 200/200
20000
replicated
ERROR:  cannot execute CREATE TABLE in a read-only transaction
";
    script!("postgres", &["psql"], prints).run_long();
}

#[test]
fn memcached_keeps_values() {
    let prints = "STORED
VALUE big 0 512000 True
by UDP: ['VALUE', 'k7', '0', '4', '0007', 'END']
";
    script!("memcached", &["memcached", "python3"], prints).run_long();
}

#[test]
fn rsync_copies_trees() {
    let prints = "Number of regular files transferred: 5
same
Number of regular files transferred: 0
difference
same
same
";
    script!("rsync", &["rsync"], prints).run_long();
}

const SSH: &[&str] = &["sshd", "ssh", "ssh-keygen", "scp", "sftp", "rsync"];

#[test]
fn sshd_takes_scp_sftp_and_rsync_of_a_user() {
    let prints = "h2\ncode 5\ncopied\ncopied\ncopied\nsynced\n";
    script!("ssh", SSH, prints).run_long();
}

#[test]
fn sshd_takes_scp_sftp_and_rsync_of_root() {
    let prints = "h2\ncode 5\ncopied\ncopied\ncopied\nsynced\nowner 1234:1235\n";
    let script = script!("ssh", SSH, prints).as_root();
    script.run_long_of_root(&[("ROOT", "1")]);
}

/// Once: it takes half a minute to compile Go's own library.
#[test]
fn a_program_in_go_is_built_and_talks() {
    let script = script!("go", &["go"], "right 8\n");
    if is_wanted() && script.is_possible() {
        let case = crossed().pop();
        case.into_iter().for_each(|case| script.run(case, &[]));
    }
}

#[test]
fn a_program_in_java_talks() {
    script!("java", &["java"], "10.9.0.2 right 4\n").run_long();
}

#[test]
fn vsftpd_takes_and_gives_files() {
    let prints = "passive\nactive\nsent\nlisted ['file', 'in'] 3000000\n";
    script!("vsftpd", &["vsftpd", "curl", "python3"], prints).run_long();
}

#[test]
fn dnsmasq_answers_for_names() {
    let prints = "10.9.0.3        printer.office
10.9.0.2        mail.office
none: 2
1
by TCP: hello
";
    let needs = &["dnsmasq", "getent", "ping", "python3", "mount"];
    script!("dnsmasq", needs, prints).as_root().run_long();
}

#[test]
fn tcpdump_writes_a_capture() {
    let prints = "3 received\nrefused\nrequests 3\nreplies 3\nresets 1\n";
    let script = script!("tcpdump", &["tcpdump", "ping"], prints).as_root();
    script.run_long_of_root(&[]);
}

#[test]
fn traceroute_finds_the_way() {
    let prints = "UDP 1 10.9.0.2
ICMP 1 10.9.0.2
TCP 1 10.9.0.2
routed 1 10.9.0.2
routed 2 10.9.0.3
";
    let needs = &["traceroute", "ip"];
    script!("traceroute", needs, prints).as_root().run_long();
}

#[test]
fn traceroute_and_mtr_find_the_way_over_routers() {
    let prints = "UDP 1 10.9.0.254 2 10.9.1.253 3 10.9.2.1
ICMP 1 10.9.0.254 2 10.9.1.253 3 10.9.2.1
TCP 1 10.9.0.254 2 10.9.1.253 3 10.9.2.1
mtr 10.9.0.254 0.0% 5
mtr 10.9.1.253 0.0% 5
mtr 10.9.2.1 0.0% 5
Frag needed and DF set (mtu = 1500)
";
    let script = script!("routed", &["traceroute", "mtr", "ping"], prints);
    script.as_root().over(ROUTED).run_long();
}

#[test]
fn sshd_takes_scp_sftp_and_rsync_over_a_router() {
    let prints = "h2\ncode 5\ncopied\ncopied\ncopied\nsynced\n";
    script!("ssh", SSH, prints).over(ROUTED).run_long();
}

#[test]
fn dhclient_gets_an_address_by_a_relay() {
    let prints = "fixed-address 10.9.0.100;\nsubnet-mask 255.255.255.0;\n3 received\n1\n";
    let script = script!("dhcp", &["dnsmasq", "dhclient", "ping", "ip"], prints);
    script.as_root().over(GATEWAY).run_crossed();
}

#[test]
fn tcpdump_sees_both_sides_of_a_host_that_sends_on() {
    let prints = "3 received\neth0 3 ttl 64\neth1 3 ttl 63\n";
    let script = script!("captured", &["tcpdump", "ping"], prints);
    script.as_root().over(GATEWAY).run_long_of_root(&[]);
}

#[test]
fn mtr_reports_no_loss() {
    let prints = "ICMP 10.9.0.2 0.0% 5\nUDP 10.9.0.3 0.0% 5\n";
    script!("mtr", &["mtr"], prints).as_root().run_long();
}

#[test]
fn git_pushes_clones_and_fetches() {
    let prints = "cloned\nsecond\nfirst\naccess denied or repository not exported\n";
    script!("git", &["git"], prints).run_long();
}

#[test]
fn tc_replaces_a_queue_until_the_network_needs_it() {
    let prints = "tbf\nreplaced\n2 received\nsame\ntbf\n";
    let needs = &["tc", "ping", "curl", "python3"];
    script!("tc", needs, prints).as_root().run_long();
}

/// No script lies there that no test runs.
#[test]
fn every_script_has_its_test() {
    let own = include_str!("lab_ordinary.rs");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ordinary");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".sh");
        let is_run = own.contains(&format!("script!(\"{name}\", "));
        assert!(is_run || name == "begin", "{name}.sh");
    }
}
