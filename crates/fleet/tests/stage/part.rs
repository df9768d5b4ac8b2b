//! What the tests start: a lab's processes, an agent, or an orchestrator that is told what to do.
//!
//! Model:   as `agent` it obeys an orchestrator, as the command does; as `join ADDRESS NAME` it connects to one, and as
//!          `hold ADDRESS HOSTS` it is one that only waits until its input ends. As `steer FOLDER HOSTS` it starts agents by ssh with
//!          the configuration in the folder, and then does what each line of its input says; each is answered by a line
//!          that begins with `ok` or `failed`.
#![forbid(unsafe_code)]

use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sonde_fleet::{
    Ask, Between, ConnectOptions, Fleet, FleetError, Joining, Launcher, SshOptions, TOKEN_VARIABLE,
    Token, join, targets,
};
use sonde_measure::{Path, Wait};
use sonde_measure::{Probe, Procedure, Spec};

fn main() -> ExitCode {
    let part = sonde_lab::entry().or_else(|| sonde_probe::agent::entry(None));
    if let Some(code) = part {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["agent"] => match sonde_probe::agent::run(std::io::stdin(), std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        ["join", to, name] => {
            let joining = Joining {
                to: to.into(),
                token: Token::parse(&std::env::var(TOKEN_VARIABLE).unwrap()).unwrap(),
                name: Some(name.into()),
                timeout: Duration::from_secs(60),
            };
            match join(&joining) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            }
        }
        ["hold", at, hosts] => {
            let launcher = Launcher::User {
                hosts: hosts.parse().unwrap(),
            };
            let mut options = ConnectOptions::new(launcher);
            options.listen = at.parse().unwrap();
            options.token = Token::parse(&std::env::var(TOKEN_VARIABLE).unwrap()).ok();
            let fleet = Fleet::connected(&std::env::current_exe().unwrap(), &options).unwrap();
            println!("ok {}", fleet.hosts().len());
            let _ = std::io::stdin().lock().lines().count();
            ExitCode::SUCCESS
        }
        ["machine"] => {
            let mut fleet = Fleet::local(&std::env::current_exe().unwrap()).unwrap();
            let machine = fleet.virtual_machine(&[0]).unwrap();
            println!("ok {}", machine.environment()["PVM_VMID"]);
            let _ = std::io::stdin().lock().lines().count();
            ExitCode::SUCCESS
        }
        ["steer", folder, hosts] => {
            steer(folder, hosts);
            ExitCode::SUCCESS
        }
        _ => panic!("there is no part {words:?}"),
    }
}

fn steer(folder: &str, hosts: &str) {
    let mut options = SshOptions {
        arguments: vec!["-F".into(), format!("{folder}/ssh_config")],
        // Most of its tests are about hosts that do not come up.
        all: !std::fs::exists(format!("{folder}/some")).unwrap(),
        ..Default::default()
    };
    if let Ok(seconds) = std::fs::read_to_string(format!("{folder}/silence")) {
        options.silence_max = Duration::from_secs(seconds.parse().unwrap());
    }
    let program = std::env::current_exe().unwrap();
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(PathBuf::from(folder).join(path.file_name().unwrap()))
    };
    let targets = match targets(hosts, read) {
        Ok(targets) => targets,
        Err(error) => return println!("failed {error}"),
    };
    let mut fleet = match Fleet::ssh(&program, &targets, &options) {
        Ok(fleet) => fleet,
        Err(error) => return fail(&error),
    };
    let addresses: Vec<_> = fleet
        .hosts()
        .iter()
        .map(|host| host.address.clone())
        .collect();
    println!("ok started {}", addresses.join(" "));
    let mut machine = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<usize>().unwrap();
        match words[0] {
            "measure" => measure(&mut fleet, words[1], number(2), number(3)),
            "alive" => println!("ok {}", fleet.alive(number(1))),
            "revive" => match fleet.revive(number(1)) {
                Ok(()) => println!("ok revived"),
                Err(error) => fail(&error),
            },
            "clocks" => {
                fleet.resync();
                let clocks = fleet.hosts().iter().map(|host| {
                    host.clock.map_or_else(
                        || "none".into(),
                        |clock| {
                            format!(
                                "{},{:?},{}",
                                clock.offset_ns, clock.drift_ppb, clock.bound_ns
                            )
                        },
                    )
                });
                println!("ok {}", clocks.collect::<Vec<String>>().join(" "));
            }
            "machine" => match fleet.virtual_machine(&[number(1), number(2)]) {
                Ok(made) => {
                    println!("ok {}", made.environment()["PVM_VMID"]);
                    machine = Some(made);
                }
                Err(error) => fail(&error),
            },
            "add" | "delete" => {
                let machine = machine.as_mut().expect("a machine was started");
                let done = match words[0] {
                    "add" => machine.add(number(1)),
                    _ => machine.delete(number(1)),
                };
                match done.and_then(|()| machine.configuration()) {
                    Ok(names) => println!("ok {}", names.join(" ")),
                    Err(error) => fail(&error),
                }
            }
            "end" => match machine.take().expect("a machine was started").end() {
                Ok(()) => println!("ok gone"),
                Err(error) => fail(&error),
            },
            "notes" => println!("ok {}", fleet.notes().join(" / ")),
            "facts" => {
                let facts = fleet.hosts().iter().map(|host| {
                    let interface = host.facts.interface.as_deref().unwrap_or("none");
                    format!(
                        "{},{interface},{}",
                        host.facts.hostname,
                        host.facts.mtu_bytes.unwrap_or(0)
                    )
                });
                println!("ok {}", facts.collect::<Vec<String>>().join(" "));
            }
            other => panic!("there is nothing to do by {other}"),
        }
    }
    match fleet.stop() {
        Ok(troubles) => println!("ok stopped {}", troubles.join(" / ")),
        Err(error) => fail(&error),
    }
}

fn measure(fleet: &mut Fleet, probe: &str, src: usize, dst: usize) {
    let probe = match probe {
        "startup" => Probe::Startup,
        "latency" => Probe::Latency,
        "stream" => Probe::Stream,
        other => panic!("there is no probe {other}"),
    };
    let mut spec = Spec::new(probe, Path::Tcp, Wait::Block);
    spec.timeout_ns = 4_000_000_000;
    if probe == Probe::Stream {
        spec.procedure = Procedure::Stream {
            window_ns: 5_000_000_000,
        };
    }
    let ask = Ask {
        spec,
        between: Between {
            src,
            dst,
            one_way_ns: None,
            load: None,
        },
    };
    match fleet.converse(&ask) {
        Ok(launched) => {
            let size = &launched.outcome.sizes[0];
            let one = &size.measurements[0];
            println!("ok {:?} {}", one.quantity, one.series.count());
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &FleetError) {
    let text = error.to_string().replace('\n', " / ");
    println!(
        "failed lost={} host={} {text}",
        error.lost,
        error.host.as_deref().unwrap_or("none")
    );
}
