//! What is set of files is read by name, and what a service has not is refused.

use super::*;

fn parse(path: &str, pairs: &[(&str, &str)]) -> Result<Files, BadKnob> {
    let values = pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    Files::parse(path.parse().unwrap(), &values.collect())
}

#[test]
fn paths_of_files_are_read_back() {
    for path in FilesPath::ALL {
        assert_eq!(path.name().parse(), Ok(path));
        let json = serde_json::to_string(&path).unwrap();
        assert_eq!(json, format!("\"{path}\""));
        assert_eq!(serde_json::from_str::<FilesPath>(&json).unwrap(), path);
    }
    assert_eq!("nfs2".parse::<FilesPath>().unwrap().name(), "nfs2:udp");
    assert_eq!("nfs3".parse::<FilesPath>().unwrap().name(), "nfs3:tcp");
    let error = "nfs4".parse::<FilesPath>().unwrap_err();
    assert!(error.contains("nfs2:udp, nfs2:tcp, nfs3:udp"), "{error}");
}

#[test]
fn settings_are_read_by_name() {
    let files = parse(
        "nfs3:udp",
        &[
            ("op", "write"),
            ("transfer", "32KiB"),
            ("outstanding", "4"),
            ("clients", "3"),
            ("sync", "no"),
            ("attribute-cache", "no"),
            ("retransmit", "200ms"),
            ("daemons", "2"),
            ("service", "7ms"),
            ("queue", "3"),
            ("rcvbuf", "64KiB"),
            ("reply-cache", "no"),
            ("disk", "16Mbit"),
            ("seek", "10ms"),
            ("cache", "1MiB"),
            ("store", "scratch"),
            ("names", "7"),
        ],
    )
    .unwrap();
    let wanted = Files {
        service: Service::Nfs3,
        operation: Operation::Write {},
        transfer_bytes: 32_768,
        outstanding: 4,
        clients: 3,
        is_sync: false,
        keeps_attributes: false,
        retransmit_ns: 200_000_000,
        daemons: 2,
        service_ns: 7_000_000,
        queue: 3,
        receive_buffer_bytes: Some(65_536),
        keeps_replies: false,
        disk: Some(Disk {
            rate_bps: 16_000_000,
            seek_ns: 10_000_000,
            cache_bytes: 1 << 20,
        }),
        store: Store::Scratch,
        names: 7,
        ..Files::usual("nfs3:udp".parse().unwrap())
    };
    assert_eq!(files, wanted);
    let json = serde_json::to_string(&files).unwrap();
    assert_eq!(serde_json::from_str::<Files>(&json).unwrap(), files);
    for (name, _) in Files::NAMES {
        // The last counts: `seek` needs a disk, and of `disk` itself the wrong value has to stay.
        let error = match (is_of_ftp(name), is_of_fs(name)) {
            (true, _) => parse("ftp", &[(CLIENT_DISK, "16Mbit"), (name, "?")]),
            (_, true) => parse("fs", &[(name, "?")]),
            _ => parse("nfs2", &[(DISK, "16Mbit"), (name, "?")]),
        };
        let error = error.unwrap_err().to_string();
        assert!(
            !error.contains("no such knob") && !error.contains("none"),
            "{error}"
        );
    }
}

#[test]
fn settings_of_ftp_are_read_by_name() {
    let files = parse(
        "ftp",
        &[
            ("op", "write"),
            ("window", "32KiB"),
            ("sndbuf", "64KiB"),
            ("rcvbuf", "128KiB"),
            ("copy", "60KiB"),
            ("read-ahead", "1MiB"),
            ("type", "ascii"),
            ("translate", "character"),
            ("disk", "96Mbit"),
            ("client-disk", "16Mbit"),
            ("client-seek", "10ms"),
            ("client-cache", "8KiB"),
        ],
    )
    .unwrap();
    let disk = |rate_bps, seek_ns, cache_bytes| Disk {
        rate_bps,
        seek_ns,
        cache_bytes,
    };
    let wanted = Files {
        operation: Operation::Write {},
        receive_buffer_bytes: Some(131_072),
        disk: Some(disk(96_000_000, 0, 0)),
        ftp: Ftp {
            window_bytes: Some(32_768),
            send_buffer_bytes: Some(65_536),
            copy_bytes: 61_440,
            read_ahead_bytes: 1 << 20,
            representation: Representation::Ascii,
            translation: Translation::Character,
            client_disk: Some(disk(16_000_000, 10_000_000, 8_192)),
        },
        ..Files::usual("ftp".parse().unwrap())
    };
    assert_eq!(files, wanted);
    assert_eq!(files.check(Path::Tcp), Ok(()));
    let json = serde_json::to_string(&files).unwrap();
    assert_eq!(serde_json::from_str::<Files>(&json).unwrap(), files);
}

#[test]
fn settings_of_a_file_system_are_read_by_name() {
    let files = parse(
        "fs",
        &[
            ("op", "write"),
            ("transfer", "4KiB"),
            ("outstanding", "8"),
            ("sync", "no"),
            ("directory", "/mnt/scratch"),
            ("direct", "yes"),
            ("cached", "yes"),
        ],
    )
    .unwrap();
    assert_eq!(files.fs.directory.unwrap().as_str(), "/mnt/scratch");
    assert!(files.fs.is_direct && files.fs.is_cached && !files.is_sync);
    assert_eq!(files.check(Path::Tcp), Ok(()));
    let json = serde_json::to_string(&files).unwrap();
    assert_eq!(serde_json::from_str::<Files>(&json).unwrap(), files);
    for (pairs, why) in [
        (
            &[("op", "lookup"), ("outstanding", "2")][..],
            "one call at a time",
        ),
        (
            &[("direct", "yes"), ("transfer", "1KiB")],
            "multiples of 4 KiB",
        ),
    ] {
        let error = parse("fs", pairs).unwrap().check(Path::Tcp).unwrap_err();
        assert!(
            format!("{error}: {}", error.remedy).contains(why),
            "{error}"
        );
    }
    let long = format!("/{}", "d".repeat(255));
    for (name, value, why) in [
        ("directory", "here", "as /mnt/scratch"),
        ("directory", long.as_str(), "at most 255 bytes"),
        ("daemons", "2", "fs has none"),
        ("clients", "2", "fs has none"),
        ("copy", "8KiB", "fs has none"),
    ] {
        let error = parse("fs", &[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let error = parse("nfs3", &[("direct", "yes")]).unwrap_err().to_string();
    assert!(error.contains("nfs3:tcp has none: it is of fs"), "{error}");
}

#[test]
fn what_another_service_has_is_refused() {
    for name in OF_CALLS {
        let error = parse("ftp", &[(name, "8")]).unwrap_err().to_string();
        assert!(error.contains("it is of nfs2 and nfs3"), "{error}");
    }
    for (name, _) in Ftp::NAMES {
        let error = parse("nfs3:udp", &[(name, "8")]).unwrap_err().to_string();
        assert!(error.contains("nfs3:udp has none: it is of ftp"), "{error}");
    }
    let error = parse("ftp", &[("client-seek", "1ms")]).unwrap_err();
    assert!(error.to_string().contains("client-disk=16Mbit"), "{error}");
    for (name, value, why) in [
        ("op", "lookup", "it moves whole files"),
        ("outstanding", "2", "one transfer at a time"),
    ] {
        let files = parse("ftp", &[(name, value)]).unwrap();
        let error = files.check(Path::Tcp).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn wrong_settings_are_refused() {
    for (name, value, why) in [
        ("op", "delete", "write read, write, getattr"),
        ("outstanding", "0", "from 1 to 256"),
        ("clients", "33", "from 1 to 32"),
        ("service", "2s", "up to"),
        ("seek", "1ms", "disk=16Mbit"),
        ("store", "tape", "memory or scratch"),
        ("streams", "2", "there are op, transfer"),
    ] {
        let error = parse("nfs2", &[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains(name), "{error}");
    }
    for (path, transfer, why) in [
        ("nfs2:udp", "16KiB", "up to 8,192 bytes"),
        ("nfs2:tcp", "64KiB", "up to 8,192 bytes"),
        ("nfs3:udp", "64KiB", "do not fit in a datagram"),
    ] {
        let files = parse(path, &[("transfer", transfer)]).unwrap();
        let path: FilesPath = path.parse().unwrap();
        let error = files.check(path.over).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    let variant = parse("nfs2:udp", &[("transfer", "60KiB")]).unwrap();
    assert_eq!(variant.check(Path::Udp), Ok(()));
}
