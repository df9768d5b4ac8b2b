//! A network's or a site's description of the user's, with knobs, up to the model that is built of it.

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // The first line is the knobs, the rest the file.
    let (knobs, file) = text.split_once('\n').unwrap_or(("", text));
    let _ = sonde_link::resolve(text, &|_| Err("no file".into()));
    if let Ok(site) = sonde_link::parse_site("site.toml", file, &|_| Err("no file".into()))
        && site.count() <= 64
    {
        let _ = sonde_link::join(&site, 1, Vec::new());
    }
    let selector = format!("./net.toml:{knobs}");
    for selector in ["./net.toml", &selector] {
        if let Ok(spec) = sonde_link::resolve(selector, &|_| Ok(file.to_owned())) {
            let _ = sonde_link::build(&spec, 4, 1);
        }
    }
}
