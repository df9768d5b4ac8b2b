//! Making an adapter of the source that is inside this program.
//!
//! Model:   compiler, header and version are found by preprocessing a text that names the version's macros: a macro that
//!          stays a name is unknown. The object is made under another name and renamed, so that a running rank keeps its own.

use super::super::machine::{Machine, run};
use super::{HEADER, Recipe};
use sha2::{Digest, Sha256};
use sonde_message::adapters;
use sonde_sys::tell;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A compiler has done by then.
const COMPILE: Duration = Duration::from_secs(120);
/// What makes a shared object.
const FLAGS: [&str; 6] = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra"];
const WORD: &str = "sonde_version";

/// What an adapter is made with.
pub struct Tools {
    compiler: PathBuf,
    /// The first line of what it says of itself.
    compiler_version: String,
    /// Where headers are, and what is linked.
    include: Vec<String>,
    link: Vec<String>,
    /// Of the library.
    pub version: String,
}

/// Whether it had to be made.
pub enum Made {
    Now,
    Before,
}

impl Tools {
    /// The compiler and the library's version.
    ///
    /// # Errors
    /// Which of them is missing.
    pub fn find(machine: &Machine, recipe: &Recipe) -> Result<Self, String> {
        let (include, link) = flags(machine, recipe);
        let mut lacking = format!("no {}", recipe.compilers[0]);
        for compiler in recipe.compilers {
            let Some(compiler) = machine.program(compiler) else {
                continue;
            };
            match version(&compiler, &include, recipe) {
                Some(version) => {
                    let said = run(Command::new(&compiler).arg("--version"), b"", COMPILE);
                    let said = said.map(|(_, text)| text).unwrap_or_default();
                    return Ok(Self {
                        compiler_version: said.lines().next().unwrap_or_default().to_owned(),
                        compiler,
                        include,
                        link,
                        version,
                    });
                }
                None => {
                    lacking = format!(
                        "{} does not find {} of {}",
                        compiler.display(),
                        recipe.header,
                        recipe.title
                    );
                }
            }
        }
        Err(lacking)
    }

    /// What tells this adapter from one of other sources, of another compiler or library.
    fn stamp(&self, recipe: &Recipe) -> String {
        let mut hash = Sha256::new();
        hash.update(HEADER);
        hash.update(recipe.source);
        let mut sources = String::new();
        for byte in hash.finalize() {
            // Writing to a String does not fail.
            let _ = write!(sources, "{byte:02x}");
        }
        format!(
            "sources {sources}\ncompiler {} {}\nflags {} {} {}\nlibrary {} {}\n",
            self.compiler.display(),
            self.compiler_version,
            FLAGS.join(" "),
            self.include.join(" "),
            self.link.join(" "),
            recipe.title,
            self.version
        )
    }
}

/// What the preprocessor and the linker need beside the compiler's own: pkg-config's words, else the usual ones.
fn flags(machine: &Machine, recipe: &Recipe) -> (Vec<String>, Vec<String>) {
    let mut include = Vec::new();
    let mut link: Vec<String> = recipe.libraries.iter().map(|&word| word.into()).collect();
    let asked = recipe.module.zip(machine.program("pkg-config"));
    let said = |module: &str, program: &Path, what: &str| {
        let asked = run(Command::new(program).args([what, module]), b"", COMPILE);
        let (success, text) = asked.unwrap_or_default();
        let words = text.split_whitespace().map(str::to_owned);
        success.then(|| words.collect::<Vec<_>>())
    };
    if let Some((module, program)) = asked {
        include.extend(said(module, &program, "--cflags").unwrap_or_default());
        if let Some(words) = said(module, &program, "--libs") {
            link = words;
        }
    }
    // PVM's own installation is named by its root.
    if let Some(root) = std::env::var_os("PVM_ROOT").filter(|_| recipe.name == "pvm") {
        let root = Path::new(&root);
        let library = root
            .join("lib")
            .join(std::env::var_os("PVM_ARCH").unwrap_or_default());
        if root.join("include").is_dir() {
            include.push(format!("-I{}", root.join("include").display()));
        }
        if library.is_dir() {
            link.insert(0, format!("-L{}", library.display()));
        }
    }
    (include, link)
}

/// The library's version, as this compiler finds it in the header.
fn version(compiler: &Path, include: &[String], recipe: &Recipe) -> Option<String> {
    // The header of the table itself is not on the machine.
    let text = if recipe.header == "sonde_adapter.h" {
        HEADER.to_owned()
    } else {
        format!("#include <{}>\n", recipe.header)
    };
    let text = format!("{text}{WORD} {}\n", recipe.version.join(" "));
    let mut command = Command::new(compiler);
    command.args(["-E", "-P", "-x", "c"]).args(include).arg("-");
    let (success, said) = run(&mut command, text.as_bytes(), COMPILE).ok()?;
    let line = said
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix(WORD))?;
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| word.trim_matches(['"', 'u', '(', ')']))
        .collect();
    let known = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
    (success && !words.is_empty() && words.iter().all(known)).then(|| words.join("."))
}

fn stamp_file(object: &Path) -> PathBuf {
    let mut name = object.as_os_str().to_owned();
    name.push(".stamp");
    name.into()
}

/// Whether the adapter `object` was made of these sources by these tools.
pub fn is_made_by(object: &Path, tools: &Tools, recipe: &Recipe) -> bool {
    object.is_file()
        && fs::read_to_string(stamp_file(object)).is_ok_and(|stamp| stamp == tools.stamp(recipe))
}

/// Makes the adapter in `folder`, unless it is up to date.
///
/// # Errors
/// The folder cannot be written, or the compiler refuses: its first words of error.
pub fn make(tools: &Tools, recipe: &Recipe, folder: &Path) -> Result<(Made, PathBuf), String> {
    let object = folder.join(adapters::file_name(recipe.name));
    if is_made_by(&object, tools, recipe) {
        return Ok((Made::Before, object));
    }
    let work = folder.join(format!(".{}-{}", recipe.name, std::process::id()));
    let done = fs::create_dir_all(&work)
        .map_err(|error| format!("cannot make {}: {error}", work.display()))
        .and_then(|()| compile(tools, recipe, &work, &object));
    // What is left of it is in the way of nothing.
    drop(fs::remove_dir_all(&work));
    done.map(|()| (Made::Now, object))
}

fn compile(tools: &Tools, recipe: &Recipe, work: &Path, object: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| format!("cannot write into {}: {error}", work.display());
    let source = work.join("adapter.c");
    let made = work.join("adapter.so");
    fs::write(&source, recipe.source).map_err(text)?;
    fs::write(work.join("sonde_adapter.h"), HEADER).map_err(text)?;
    let mut command = Command::new(&tools.compiler);
    command.args(FLAGS).args(&tools.include).arg(&source);
    command.args(&tools.link).arg("-o").arg(&made);
    let (success, said) = run(&mut command, b"", COMPILE)?;
    if !said.trim().is_empty() {
        tell!("{}", said.trim_end());
    }
    if !success {
        let first = said.lines().find(|line| line.contains("error"));
        let first = first.or_else(|| said.lines().next()).unwrap_or("no reason");
        return Err(format!("{} refuses it: {first}", tools.compiler.display()));
    }
    // Without a stamp an object is built again, so whenever this ends early the next one begins anew.
    let stamp = stamp_file(object);
    drop(fs::remove_file(&stamp));
    fs::rename(&made, object).map_err(text)?;
    fs::write(&stamp, tools.stamp(recipe)).map_err(text)
}
