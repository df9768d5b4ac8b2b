//! Link technologies as pure state machines, and the catalogue of networks made of them.
//!
//! Model:   station queue, serializer, wire, path elements, switch with output queues, cells and circuits; composed by
//!          [`Fabric`], driven through [`Network`]. Time is an argument; nothing here reads a clock or opens a socket.
//! Source:  each catalogue file cites its figures; each module cites its standard.
//! Units:   [`Instant`](sonde_units::Instant) and [`Span`](sonde_units::Span) in picoseconds; sizes are layer-3 bytes
//!          unless a name says `wire`.
//! Checked: unit tests beside each part; the properties in `tests/properties.rs` for the whole.
#![forbid(unsafe_code)]

mod calendar;
mod catalogue;
mod cell;
mod chain;
mod circuit;
mod counters;
mod edge;
mod fabric;
mod fault;
mod frame;
mod framing;
mod graph;
mod host;
mod hosted;
pub mod ledger;
mod load;
mod medium;
mod network;
mod output;
mod pace;
mod path;
mod schedule;
mod script;
mod shared;
mod site;
mod slab;
mod spec;
mod station;
mod words;

pub use catalogue::{CatalogueError, catalogue, named, parse, resolve, selector_of_option};
pub use chain::{ChainStep, Headers, overhead, tcp_max, tcp_with_acks, udp_max};
pub use counters::{AccessCounters, Counters, FlowCounters, PortCounters};
pub use fabric::{Fabric, build, build_with};
pub use fault::Fault;
pub(crate) use frame::Datagram;
pub use frame::{Class, Ecn, Frame, FrameId, GroupId, Kind, Piece, Port, Routed, To};
pub use framing::{Bursts, CELL_PAYLOAD, CELL_WIRE, Encapsulation, Fill, Framing};
pub use graph::{Assign, Assignment, Layout, PortLine, Site, Trunk, Wire};
pub use host::HostSpec;
pub use hosted::Hosted;
pub use load::laws::Distances;
pub use load::{Captured, FLOWS_MAX, Flow, Law};
pub use medium::atm::spec::{
    AtmTraffic, Category, Contract, Discard, Feedback, Lane, Pvc, PvcLayout, Restoration,
};
pub use medium::bus::Bus;
pub use medium::credit::Credit;
pub use medium::crossbar::{Busy, Choice, Crossbar, Order, Signals};
pub use medium::sci::Sci;
pub use medium::stages::{Interface, Stages};
pub use medium::token::TokenRing;
pub use network::{
    Admission, Answer, Cause, Change, Command, Edit, Event, Mark, Network, Place, Refused,
    VcCommand,
};
pub use schedule::{FaultSpec, LoadSpec, commands};
pub use script::{CommandError, Script, ScriptError};
pub use shared::{LineOf, SharedLines, is_one_line, shared_lines};
pub use site::catalogue::{resolve_site, sites};
pub use site::spec::{
    Bridge, By, HostPort, Router, Segment, SiteError, SiteSpec, TooLong, names_of, parse_site,
};
pub use site::{Internetwork, NodeCounters, Subnets, join};
pub use spec::{
    Circuits, FlowControl, Forwarding, Line, NetworkSpec, PathSpec, Resolution, Signalling,
    SpecError, Station, Switch, Technology, Topology,
};

pub use output::Limit;
