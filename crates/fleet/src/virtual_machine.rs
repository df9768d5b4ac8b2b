//! PVM's virtual machine over hosts of a fleet: its daemons, as long as this is held.
//!
//! Model:   an agent of its own on the first host runs the first daemon (`keeper.sh`), which starts the others: in a lab by
//!          the lab's remote shell, behind ssh by the first host's own ssh. Another agent there runs PVM's console, by which
//!          hosts come and go. Hosts are named by their addresses on the network that is measured. The machine has an id
//!          and a folder of its own on each host, so that it meets no other of the same user. When the first agent ends,
//!          however it does, a guard on the first host ends the daemons and takes the folders away.
//! Source:  pvmd3(1PVM), pvm(1PVM), pvm_intro(1PVM) of PVM 3.4.6.
//! Checked: `what_the_console_says_is_read`; `tests/lab_virtual_machine.rs` adds, deletes and kills.

pub(crate) mod console;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sonde_probe::{Answer, EndOf, Program, Ran, Request};

use self::console::{configuration, one_line};
use crate::agent::Agent;
use crate::error::{FleetError, Result};
use crate::fleet::Fleet;

const KEEPER: &str = include_str!("virtual_machine/keeper.sh");
/// The first daemon is there within this.
const UP: Duration = Duration::from_secs(10);
/// The console has done what it was told within this: for a host that is not reached PVM takes some seconds.
const CONSOLE: Duration = Duration::from_secs(60);
/// Daemons and folders are gone within this.
const DOWN: Duration = Duration::from_secs(25);
/// PVM is asked again after this.
const PAUSE: Duration = Duration::from_millis(50);
/// An answer comes so long after a program's limit at most.
const MARGIN: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(86_400);
const INSTALL: &str =
    "install PVM there (Debian: pvm), and see whether `pvm` starts; PVM_ROOT may name another";

/// A virtual machine that runs. Dropping it ends it without waiting for that.
pub struct VirtualMachine {
    /// Holds the first daemon. Dropped first.
    keeper: Agent,
    console: Agent,
    environment: BTreeMap<String, String>,
    /// What PVM calls each host of the fleet.
    names: Vec<String>,
    /// The hosts of the machine, the first daemon's first.
    hosts: Vec<usize>,
}

impl Fleet {
    /// Starts PVM's daemons on these hosts; the first is where programs that enrol may be started.
    ///
    /// # Errors
    /// PVM is missing on a host, or a host is not reached from the first one: each is named.
    ///
    /// # Panics
    /// No host is named, or one that is not of this fleet.
    pub fn virtual_machine(&mut self, hosts: &[usize]) -> Result<VirtualMachine> {
        let first = *hosts.first().expect("a virtual machine has a first host");
        let count = self.hosts().len();
        assert!(
            hosts.iter().all(|host| *host < count),
            "{hosts:?} of {count}"
        );
        let names: Vec<String> = (0..count)
            .map(|host| self.address_of(host).to_string())
            .collect();
        let routes: Vec<String> = names
            .iter()
            .enumerate()
            .filter_map(|(host, name)| Some(format!("{name} {}", self.machines.route(host)?)))
            .collect();
        let placement = self.machines.pattern_placement();
        let console = self.machines.start(first, placement)?;
        let keeper = self.machines.start(first, placement)?;
        let environment = environment(&self.hosts()[first].name)?;
        let mut machine = VirtualMachine {
            keeper,
            console,
            environment,
            names,
            hosts: vec![first],
        };
        machine.bring_up(&routes.join("\n"))?;
        for host in &hosts[1..] {
            machine.add(*host)?;
        }
        Ok(machine)
    }
}

/// The variables of a fresh machine. What is set where sonde runs is taken for right on its hosts too.
fn environment(host: &str) -> Result<BTreeMap<String, String>> {
    let id = sonde_probe::token()
        .map_err(|error| FleetError::at(host, "name a virtual machine", error, ""))?;
    let id = format!("sonde-{}", &id[..8]);
    let usual = |name: &str, value: &str| std::env::var(name).unwrap_or_else(|_| value.into());
    let root = usual("PVM_ROOT", "/usr/lib/pvm3");
    let all = [
        ("PVM_DPATH", usual("PVM_DPATH", &format!("{root}/lib/pvmd"))),
        ("PVM_ARCH", usual("PVM_ARCH", "LINUX64")),
        ("PVM_ROOT", root),
        ("PVM_TMP", format!("/tmp/{id}")),
        ("PVM_VMID", id),
        ("PVM_ALLOW_ROOT", "1".into()),
    ];
    Ok(all.map(|(name, value)| (name.into(), value)).into())
}

impl VirtualMachine {
    /// What a program on any of its hosts needs in its environment to enrol: `PVM_VMID`, `PVM_TMP` and so on.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// What PVM calls a host of the fleet: its address.
    pub fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    /// The hosts that it has, in the order in which they came.
    pub fn hosts(&self) -> &[usize] {
        &self.hosts
    }

    /// Adds a host.
    ///
    /// # Errors
    /// The host is not reached from the first one, or has no PVM; the machine stays as it was.
    pub fn add(&mut self, host: usize) -> Result<()> {
        let name = self.names[host].clone();
        let said = self.console(&format!("add {name}\nconf\n"))?;
        if self.hosts.contains(&host) || !configuration(&said).contains(&name) {
            let remedy = format!(
                "{INSTALL}; behind ssh let `ssh {name} true` work on {} without a password",
                self.names[self.hosts[0]]
            );
            let attempt = "add it to PVM's virtual machine";
            return Err(FleetError::at(&name, attempt, one_line(&said), remedy));
        }
        self.hosts.push(host);
        Ok(())
    }

    /// Deletes a host, and with it the tasks that run there.
    ///
    /// # Errors
    /// It is the first one, which cannot go, or PVM refuses.
    pub fn delete(&mut self, host: usize) -> Result<()> {
        let name = self.names[host].clone();
        let failed = |happened: String, remedy: &str| {
            FleetError::at(
                &name,
                "delete it from PVM's virtual machine",
                happened,
                remedy,
            )
        };
        if host == self.hosts[0] {
            return Err(failed("it has the first daemon".into(), "end the machine"));
        }
        let said = self.console(&format!("delete {name}\n"))?;
        // PVM agrees at once, and has it in its table a while longer.
        let until = Instant::now() + UP;
        while self.configuration()?.contains(&name) {
            if Instant::now() > until {
                return Err(failed(one_line(&said), "look at what PVM says there"));
            }
            std::thread::sleep(PAUSE);
        }
        self.hosts.retain(|one| *one != host);
        Ok(())
    }

    /// The names that PVM itself gives for its hosts now: one that was lost is missing.
    ///
    /// # Errors
    /// The first daemon is gone.
    pub fn configuration(&mut self) -> Result<Vec<String>> {
        let said = self.console("conf\n")?;
        let names = configuration(&said);
        if names.is_empty() {
            let own = &self.names[self.hosts[0]];
            let attempt = "ask PVM's virtual machine for its hosts";
            let remedy = "its first daemon is gone: start the machine anew";
            return Err(FleetError::at(own, attempt, one_line(&said), remedy));
        }
        Ok(names)
    }

    /// Ends it: when this returns no daemon, socket or folder of it is left on any host.
    ///
    /// # Errors
    /// They are still there after some seconds.
    pub fn end(mut self) -> Result<()> {
        // It ends with the daemons, without an answer.
        drop(self.console("halt\n"));
        self.keeper.hang_up();
        let folder = self.environment["PVM_TMP"].clone();
        let gone = "while [ -e \"$1\" ]; do sleep 0.02; done";
        // Without the machine's variables: whatever has these is ended with the daemons.
        let ran = self.run(Program::new(["sh", "-c", gone, "sh", &folder], DOWN))?;
        if ran.end == EndOf::Itself {
            return Ok(());
        }
        Err(FleetError::at(
            &self.names[self.hosts[0]],
            "end PVM's virtual machine",
            format!("{folder} is still there"),
            "end the processes pvmd3 of that folder, and remove it",
        ))
    }

    fn bring_up(&mut self, routes: &str) -> Result<()> {
        let mut keeper = Program::new(["sh", "-c", KEEPER], DAY);
        keeper.environment = self.environment.clone();
        let own = self.names[self.hosts[0]].clone();
        keeper.environment.insert("NAME".into(), own.clone());
        keeper.environment.insert("ROUTES".into(), routes.into());
        let failed = |happened: &dyn std::fmt::Display| {
            FleetError::at(&own, "start PVM's daemon", happened, INSTALL)
        };
        let sent = self.keeper.link().send(&Request::Run(keeper));
        sent.map_err(|error| failed(&error))?;
        let up = "until [ -e \"$PVM_TMP/pvmd.$(id -u).$PVM_VMID\" ]; do sleep 0.02; done";
        if self.shell(up, UP)?.end == EndOf::Itself {
            return Ok(());
        }
        let said = self.shell("cat \"$PVM_TMP/said\" \"$PVM_TMP\"/pvml.*", UP)?;
        let link = self.keeper.link();
        let ended = link
            .send(&Request::Stop {})
            .and_then(|()| link.answer("the end of PVM's daemon", MARGIN));
        let errors = match ended {
            Ok(Answer::Ran(ran)) => ran.errors,
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        };
        Err(failed(&format!(
            "it is not there after {} s: {} {}",
            UP.as_secs(),
            one_line(&said.output),
            one_line(&errors)
        )))
    }

    /// Has PVM's console do what the lines say; what it says.
    fn console(&mut self, lines: &str) -> Result<String> {
        let mut program = Program::new(["pvm"], CONSOLE);
        program.input = Some(format!("{lines}quit\n"));
        program.environment = self.environment.clone();
        let ran = self.run(program)?;
        Ok([ran.output, ran.errors].concat())
    }

    fn shell(&mut self, script: &str, limit: Duration) -> Result<Ran> {
        let mut program = Program::new(["sh", "-c", script], limit);
        program.environment = self.environment.clone();
        self.run(program)
    }

    /// Runs a program on the first host.
    fn run(&mut self, program: Program) -> Result<Ran> {
        let attempt = format!("run `{}` for PVM", program.argv[0]);
        let timeout = Duration::from_nanos(program.limit_ns) + MARGIN;
        let link = self.console.link();
        let answer = link
            .send(&Request::Run(program))
            .and_then(|()| link.answer("the end of a program", timeout));
        let host = &self.names[self.hosts[0]];
        match answer {
            Ok(Answer::Ran(ran)) => Ok(ran),
            Ok(other) => Err(FleetError::at(host, attempt, format!("{other:?}"), INSTALL)),
            Err(error) => Err(FleetError::at(host, attempt, &error, error.remedy())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "pvm> add 10.9.0.2\n1 successful\n                    HOST     DTID\n                10.9.0.2    80000\npvm> conf\n2 hosts, 1 data format\n                    HOST     DTID     ARCH   SPEED       DSIG\n                10.9.0.1    40000  LINUX64    1000 0x00408c41\n                10.9.0.2    80000  LINUX64    1000 0x00408c41\npvm> quit\n\nConsole: exit handler called\npvmd still running.\n";

    #[test]
    fn what_the_console_says_is_read() {
        assert_eq!(configuration(SAID), ["10.9.0.1", "10.9.0.2"]);
        assert!(configuration("pvm> conf\nlibpvm [pid 7]: no pvmd\n").is_empty());
        assert_eq!(
            one_line("pvm> add x\n0 successful\n\npvm> "),
            "add x / 0 successful"
        );
    }
}
