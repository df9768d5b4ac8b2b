//! Programs that an agent runs: what they give, how they are ended, and that nothing of them stays.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sonde_probe::{AgentLink, Answer, EndOf, Error, Program, Ran, Request, agent, frame};

/// Far beyond what any of these takes.
const LONG: Duration = Duration::from_secs(600);
const SOON: Duration = Duration::from_secs(20);

/// This test program, playing a part.
fn playing(part: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--ignored", "--exact", part, "--nocapture"]);
    command.stderr(Stdio::null());
    command
}

/// No test: the way in for an agent.
#[test]
#[ignore = "played by the other tests"]
fn play_the_agent() {
    let worker = || playing("program::play_the_worker");
    let ended = agent::run_with(std::io::stdin(), std::io::stdout(), worker);
    std::process::exit(i32::from(ended.is_err()));
}

/// No test: the way in for its workers.
#[test]
#[ignore = "played by the other tests"]
fn play_the_worker() {
    std::process::exit(agent::work(std::io::stdin(), std::io::stdout(), None));
}

struct Agent {
    link: AgentLink,
    child: Child,
}

impl Agent {
    fn start() -> Self {
        let mut command = playing("program::play_the_agent");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let link = AgentLink::open("h1", from, to, SOON).unwrap();
        Self { link, child }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again until it is so.
fn soon(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A time to sleep that names a test of this process.
fn word(test: u32) -> String {
    format!("8640{test}.{}", std::process::id())
}

fn shell(script: &str) -> Program {
    Program::new(["sh", "-c", script], LONG)
}

fn ask(agent: &mut Agent, program: Program) -> Result<Ran, Error> {
    agent.link.send(&Request::Run(program)).unwrap();
    ran(agent)
}

fn ran(agent: &mut Agent) -> Result<Ran, Error> {
    match agent.link.answer("the end of a program", SOON)? {
        Answer::Ran(ran) => Ok(ran),
        other => panic!("{other:?}"),
    }
}

/// Whether a process with this word among its arguments runs.
fn runs(word: &str) -> bool {
    let found = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = line.split(|byte| *byte == 0);
        words.any(|one| one == word.as_bytes()).then_some(pid)
    });
    found.count() > 0
}

/// A script that starts a child in its group and one in a session of its own, says so, and waits for both. `word` names them.
fn family(word: &str) -> String {
    format!("sleep {word} & setsid sleep {word} & sleep 0.05; echo up >&2; wait")
}

#[test]
fn a_program_gives_output_errors_and_code() {
    let mut agent = Agent::start();
    let mut program = shell("cat; echo \"$GREETING\"; pwd; echo trouble >&2; exit 3");
    program.input = Some("from here\n".into());
    program
        .environment
        .insert("GREETING".into(), "good day".into());
    program.directory = Some("/".into());
    let ran = ask(&mut agent, program).unwrap();
    assert_eq!(ran.output, "from here\ngood day\n/\n");
    assert_eq!(
        (ran.errors.trim(), ran.code, ran.signal),
        ("trouble", Some(3), None)
    );
    assert_eq!(
        (ran.end, ran.told().as_str()),
        (EndOf::Itself, "ended with code 3")
    );
    let killed = ask(&mut agent, shell("kill -9 $$")).unwrap();
    assert_eq!((killed.code, killed.signal), (None, Some(9)));
    // What is asked next is answered next.
    let error = ask(&mut agent, Program::new(["/no/such"], LONG)).unwrap_err();
    assert!(
        error.to_string().contains("cannot run `/no/such`"),
        "{error}"
    );
    assert_eq!(
        ask(&mut agent, shell("echo again")).unwrap().output,
        "again\n"
    );
}

#[test]
fn more_output_than_is_kept_does_not_hold_a_program_up() {
    let mut agent = Agent::start();
    let most = sonde_probe::OUTPUT_BYTES_MAX as u64;
    let script = format!(
        "head -c {} /dev/zero; head -c 100000 /dev/zero >&2",
        most + 5
    );
    let ran = ask(&mut agent, shell(&script)).unwrap();
    assert_eq!((ran.output.len() as u64, ran.output_beyond), (most, 5));
    assert_eq!(ran.code, Some(0));
}

#[test]
fn a_limit_ends_a_program_with_all_that_it_started() {
    let mut agent = Agent::start();
    let mut program = shell(&family(&word(1)));
    program.limit_ns = 300_000_000;
    let ran = ask(&mut agent, program).unwrap();
    assert_eq!(ran.end, EndOf::Limit);
    assert!(
        ran.errors.contains("up") && ran.told().contains("did not end"),
        "{ran:?}"
    );
    assert!(!runs(&word(1)));
}

#[test]
fn a_stop_ends_a_program_even_one_that_will_not() {
    let mut agent = Agent::start();
    let script = format!("trap '' TERM; {}; wait; wait", family(&word(2)));
    agent.link.send(&Request::Run(shell(&script))).unwrap();
    soon("the program starts", || runs(&word(2)));
    agent.link.send(&Request::Stop {}).unwrap();
    let ran = ran(&mut agent).unwrap();
    assert_eq!((ran.end, ran.told().as_str()), (EndOf::Stop, "was stopped"));
    assert!(!runs(&word(2)));
    assert_eq!(
        ask(&mut agent, shell("echo again")).unwrap().output,
        "again\n"
    );
}

#[test]
fn what_a_program_leaves_behind_is_ended_with_it() {
    let mut agent = Agent::start();
    let script = format!("setsid sleep {0} & sleep {0} & sleep 0.05; exit 0", word(3));
    let ran = ask(&mut agent, shell(&script)).unwrap();
    assert_eq!((ran.end, ran.code), (EndOf::Itself, Some(0)));
    assert!(!runs(&word(3)));
}

#[test]
fn a_killed_agent_takes_its_program_along() {
    let mut agent = Agent::start();
    agent
        .link
        .send(&Request::Run(shell(&family(&word(4)))))
        .unwrap();
    soon("the program starts", || runs(&word(4)));
    agent.child.kill().unwrap();
    soon("the program ends", || !runs(&word(4)));
}

#[test]
fn the_end_of_the_input_ends_program_and_agent() {
    let mut child = playing("program::play_the_agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let program = shell(&family(&word(5)));
    frame::write(&mut to, &Request::Run(program)).unwrap();
    soon("the program starts", || runs(&word(5)));
    drop(to);
    soon("the agent ends", || child.try_wait().unwrap().is_some());
    soon("the program ends", || !runs(&word(5)));
}
