//! Takes the report page into the build, where it was built before; else an empty one, which `page` knows as absent.
//!
//! Cargo runs a build script again for every path that does not exist. A missing page is therefore watched by the nearest
//! folder that does: `touch web/x && cargo build -p sonde-report` shows it.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let web = Path::new("../../web");
    let page = web.join("dist/page.html");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names OUT_DIR")).join("page.html");
    println!("cargo:rerun-if-changed=build.rs");
    let watched = [&page, &web.join("dist"), &web.to_path_buf()]
        .into_iter()
        .find(|path| path.exists())
        .cloned();
    if let Some(watched) = watched {
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    let bytes = if page.exists() {
        fs::read(&page).expect("the page can be read")
    } else {
        Vec::new()
    };
    fs::write(out, bytes).expect("OUT_DIR can be written");
}
