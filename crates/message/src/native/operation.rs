//! A send or a receive, how far it is, and what is kept of a message that nobody has received.
//!
//! Units:   bytes.
//! Checked: with the engine.

/// Where an operation's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the call that is being made, with this index.
    Call(u32),
    /// With the messenger, under the operation's number.
    Own,
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// A send that waits for an envelope.
    Waiting,
    /// A send whose request to send is out.
    Requested,
    /// A send whose bytes are going out.
    Going,
    /// A receive without a message.
    Posted,
    /// A receive whose message comes.
    Coming,
    Done,
}

/// A send or a receive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) place: Place,
    pub(super) state: State,
    /// The messenger's name of the group.
    pub(crate) comm: u32,
    pub(super) context: u32,
    /// The other rank, in the world; of a receive once it has a message.
    pub(crate) peer: u32,
    pub(crate) tag: u32,
    /// The message's.
    pub(crate) bytes: u64,
    /// Of a receive.
    pub(crate) room: u64,
    /// The peer's operation, and where its bytes are in its memory.
    pub(super) other: u32,
    pub(crate) address: u64,
    pub(super) is_send: bool,
}

/// What the messenger does before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Copy a kept message to this receive's bytes, then [`Engine::on_filled`].
    Fill {
        /// The receive.
        op: u32,
        /// The message.
        kept: u32,
    },
    /// Copy the bytes of the message from the sender's memory, then [`Engine::on_pulled`].
    Pull(u32),
}

/// A message that nobody has received yet.
#[derive(Debug, Default)]
pub(crate) struct Unexpected {
    pub(super) source: u32,
    pub(super) tag: u32,
    pub(super) bytes: u64,
    /// The receive that waits for the rest of its bytes, if any.
    pub(super) claimed: Option<u32>,
    pub(super) is_whole: bool,
    /// The sender's operation and where its bytes are, if they have not come.
    pub(super) request: Option<(u32, u64)>,
    pub(crate) payload: Vec<u8>,
}

impl Operation {
    pub(super) fn send(
        place: Place,
        comm: u32,
        peer: u32,
        context: u32,
        tag: u32,
        bytes: u64,
    ) -> Self {
        Self {
            place,
            state: State::Waiting,
            comm,
            context,
            peer,
            tag,
            bytes,
            room: bytes,
            other: 0,
            address: 0,
            is_send: true,
        }
    }

    #[inline]
    pub(super) fn receive(place: Place, comm: u32, context: u32, room: usize) -> Self {
        Self {
            place,
            state: State::Posted,
            comm,
            context,
            peer: u32::MAX,
            tag: 0,
            bytes: 0,
            room: room as u64,
            other: 0,
            address: 0,
            is_send: false,
        }
    }

    #[inline]
    pub(super) fn matched(&mut self, source: u32, tag: u32, bytes: u64) {
        self.state = State::Coming;
        (self.peer, self.tag, self.bytes) = (source, tag, bytes);
    }

    /// Whether its message was longer than its room.
    pub(crate) fn is_cut(&self) -> bool {
        !self.is_send && self.bytes > self.room
    }
}
