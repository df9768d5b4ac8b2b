//! How ranks that no library starts find each other, and learn that one of them ended: the native engine over TCP.
//!
//! Model:   a thread becomes a rank of the native engine and stays one: it gives the bytes of all to all when it is asked,
//!          and looks every tenth of a second whether a rank is gone. Shared memory tells nothing of a process that ended;
//!          a connection does. When the last question was asked it ends in order, unless a rank is gone.
//! Checked: `all_are_told_and_a_lost_one_is_known`; `tests/libraries` with UCX and libfabric.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sonde_message::collectives::{Choice, Communicator};
use sonde_message::{Comm, Error, Messenger, Result, native};

use crate::load::Bootstrap;

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(100);
/// Nobody is gone.
const NOBODY: i32 = -1;

/// This rank's bytes, and where those of all are told.
type Question = (Vec<u8>, Sender<Result<Vec<u8>>>);

/// The other end of the thread. It goes when the last question was asked.
struct Thread {
    questions: Option<Sender<Question>>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.questions = None;
        if let Some(handle) = self.handle.take() {
            // A panic there was told on stderr.
            drop(handle.join());
        }
    }
}

/// Meets the other ranks: returns when all have come.
///
/// # Errors
/// Those of [`native::Bootstrap::join`]; there is no thread.
pub fn meet(boot: native::Bootstrap) -> Result<Bootstrap> {
    let (rank, ranks) = (boot.rank, boot.size);
    let lost = Arc::new(AtomicI32::new(NOBODY));
    let (questions, asked) = channel::<Question>();
    let (came, all_came) = channel();
    let told = Arc::clone(&lost);
    let thread = std::thread::Builder::new().name("sonde-meeting".into());
    let handle = thread
        .spawn(move || match boot.join() {
            Ok(messenger) => {
                // Who waits for it is there.
                drop(came.send(Ok(())));
                attend(messenger, &asked, &told);
            }
            Err(error) => drop(came.send(Err(error))),
        })
        .map_err(|error| refused("starting a thread", error.to_string()))?;
    let thread = Thread {
        questions: Some(questions),
        handle: Some(handle),
    };
    let over = || refused("meeting the other ranks", "its thread ended".into());
    all_came.recv().unwrap_or_else(|_| Err(over()))?;
    let exchange = move |mine: &[u8]| {
        let (tell, answer) = channel();
        let questions = thread.questions.as_ref().ok_or_else(over)?;
        questions.send((mine.to_vec(), tell)).map_err(|_| over())?;
        answer.recv().map_err(|_| over())?
    };
    Ok(Bootstrap {
        rank,
        ranks,
        exchange: Box::new(exchange),
        lost,
    })
}

fn refused(what: &str, why: String) -> Error {
    Error::Refused {
        library: "native".into(),
        what: what.into(),
        why,
    }
}

/// Answers until nobody asks any more.
fn attend(mut messenger: Box<dyn Messenger>, asked: &Receiver<Question>, lost: &AtomicI32) {
    let note = |error: &Error| {
        if let Error::Lost { rank, .. } = error {
            let rank = i32::try_from(*rank).unwrap_or(i32::MAX);
            // The first that is gone takes the others with it.
            let _ = lost.compare_exchange(NOBODY, rank, Ordering::Relaxed, Ordering::Relaxed);
        }
    };
    loop {
        match asked.recv_timeout(LOOK) {
            Ok((mine, tell)) => {
                let told = all_of(&mut *messenger, &mine);
                if let Err(error) = &told {
                    note(error);
                }
                // Who asked waits for it.
                drop(tell.send(told));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = messenger.progress() {
                    note(&error);
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if lost.load(Ordering::Relaxed) == NOBODY {
        // Who is gone by now has finished as well.
        drop(messenger.finish());
    }
}

fn all_of(messenger: &mut dyn Messenger, mine: &[u8]) -> Result<Vec<u8>> {
    let mut all = vec![0; mine.len() * messenger.size(Comm::WORLD)];
    let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
    world.allgather(mine, &mut all)?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::Wait;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Instant;

    #[test]
    fn all_are_told_and_a_lost_one_is_known() {
        // Nobody takes this port before it is bound: the sockets of other tests are at 127.0.0.1, from which those that dial come too.
        let [.., high, low] = std::process::id().to_be_bytes();
        let free = TcpListener::bind((Ipv4Addr::new(127, 79, high, low), 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        // So many have been told all.
        let done = AtomicI32::new(0);
        let rank = |rank| {
            let begin = Instant::now();
            let boot = native::Bootstrap {
                rank,
                size: 3,
                transport: native::Transport::Tcp,
                meeting: native::Meeting::Address(address),
                own: None,
                token: "of this test".into(),
                wait: Wait::Block,
                timeout: Duration::from_secs(60),
            };
            if rank == 2 {
                // A rank without this thread, which ends without a word.
                let mut messenger = boot.join().unwrap();
                let told = all_of(&mut *messenger, &[2, 7]).unwrap();
                assert_eq!(told, [0, 7, 1, 7, 2, 7]);
                assert!(all_of(&mut *messenger, &[]).unwrap().is_empty());
                while done.load(Ordering::Relaxed) < 2 && begin.elapsed().as_secs() < 60 {
                    std::thread::sleep(LOOK);
                }
                return 2;
            }
            let mut met = meet(boot).unwrap();
            assert_eq!((met.rank, met.ranks), (rank, 3));
            let told = (met.exchange)(&[rank as u8, 7]).unwrap();
            assert_eq!(told, [0, 7, 1, 7, 2, 7]);
            assert!((met.exchange)(&[]).unwrap().is_empty());
            done.fetch_add(1, Ordering::Relaxed);
            while met.lost.load(Ordering::Relaxed) == NOBODY {
                assert!(begin.elapsed() < Duration::from_secs(60));
                std::thread::sleep(LOOK);
            }
            assert!((met.exchange)(&[1]).is_err());
            met.lost.load(Ordering::Relaxed)
        };
        let gone: Vec<i32> = std::thread::scope(|scope| {
            let rank = &rank;
            let ranks = [0, 1, 2].map(|number| scope.spawn(move || rank(number)));
            ranks.map(|rank| rank.join().unwrap()).to_vec()
        });
        assert_eq!(gone, [2, 2, 2]);
    }
}
