//! The token bucket filter, which makes `send` block at a line's rate.
//!
//! Model:   a frame of n bytes passes when the bucket holds the time it takes on the line,
//!          t(n) = max(n + overhead, mpu) / rate, with n rounded up to whole cells (53 bytes for 48) on an
//!          ATM line; the bucket holds t(burst). Every change fills the bucket.
//! Source:  net/sched/sch_tbf.c, sch_generic.c (psched_l2t_ns), include/uapi/linux/pkt_sched.h.
//! Units:   bytes, bytes per second. n includes the 14 bytes of the Ethernet header and no check sequence.
//! Checked: `the_bytes_are_those_of_tc`, `tests/gate.rs`.
//!
//! The rate table (TCA_TBF_RTAB) is read only when the link layer is unspecified, so none is sent.
//! TCA_TBF_BURST is always sent: without it the burst is worked back from a rounded time. `mpu` is honoured
//! from Linux 5.14; before that short frames pass too early.
//!
//! Found by trying (`tc -s qdisc`): a limit of 10 MB loses datagrams while every send succeeds, hence
//! [`LIMIT_BYTES`]: the socket buffers are the bound. A burst of about one MTU loses tokens to late timers
//! (87.0 of 94.15 Mb/s): give max(4 MTU, 2 to 5 ms of the rate). A pfifo child gets its limit overwritten by
//! every change: the default bfifo stays.

use netlink_packet_core::{DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use crate::netlink::{Netlink, encode};
use crate::{Error, Result};

/// A limit that never drops: the senders' socket buffers are smaller.
pub const LIMIT_BYTES: u32 = 1 << 30;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;

/// How bytes become time on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkLayer {
    /// Frames as they are.
    Ethernet,
    /// Cells of 53 bytes that carry 48.
    Atm,
}

/// The parameters of a token bucket filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbf {
    /// Rate of the line.
    pub rate_bytes_per_s: u64,
    /// Bytes that may pass at once: at least MTU + 14, or full frames are dropped.
    pub burst_bytes: u32,
    /// Bytes that may wait; see [`LIMIT_BYTES`].
    pub limit_bytes: u32,
    /// Shortest frame on the line, overhead included (Ethernet: 84). At most 65535.
    pub mpu_bytes: u16,
    /// Added to each frame (Ethernet: 24 for check sequence, preamble and gap). The kernel reads it
    /// as unsigned: -14 makes 65,522 bytes a frame (`tc -s -d qdisc` shows it), so less than a frame cannot be said.
    pub overhead_bytes: u16,
    /// Frames or cells.
    pub link_layer: LinkLayer,
}

impl Tbf {
    /// Ethernet of a given rate: overhead 24, shortest frame 84, no drops.
    pub fn ethernet(rate_bytes_per_s: u64, burst_bytes: u32) -> Self {
        Self {
            rate_bytes_per_s,
            burst_bytes,
            limit_bytes: LIMIT_BYTES,
            mpu_bytes: 84,
            overhead_bytes: 24,
            link_layer: LinkLayer::Ethernet,
        }
    }

    /// This line at 1 byte a second with room for one frame of `frame_bytes`: shut.
    ///
    /// The burst cannot be smaller, since frames longer than the burst are dropped. Read back, the burst is
    /// wrong at this rate (the kernel's 32-bit time overflows); what it does is right.
    pub fn shut(self, frame_bytes: u32) -> Self {
        Self {
            rate_bytes_per_s: 1,
            burst_bytes: frame_bytes,
            ..self
        }
    }

    /// struct tc_tbf_qopt: two tc_ratespec (the second, the peak, unused), limit, buffer, mtu.
    fn parameters(&self) -> Vec<u8> {
        let link_layer = match self.link_layer {
            LinkLayer::Ethernet => 1u8,
            LinkLayer::Atm => 2,
        };
        let mut bytes = Vec::with_capacity(36);
        bytes.extend([0, link_layer]); // cell_log, linklayer
        bytes.extend(self.overhead_bytes.to_ne_bytes());
        bytes.extend(0i16.to_ne_bytes()); // cell_align
        bytes.extend(self.mpu_bytes.to_ne_bytes());
        bytes.extend(
            u32::try_from(self.rate_bytes_per_s)
                .unwrap_or(u32::MAX)
                .to_ne_bytes(),
        );
        bytes.extend([0; 12]);
        bytes.extend(self.limit_bytes.to_ne_bytes());
        bytes.extend([0; 8]); // buffer: TCA_TBF_BURST says it; mtu: of the peak
        bytes
    }

    fn check(&self) -> Result<()> {
        if self.rate_bytes_per_s == 0 {
            let remedy = "use at least 1 byte per second";
            return Err(Error::OutOfRange {
                what: "tbf rate",
                value: "0".into(),
                remedy,
            });
        }
        if self.burst_bytes == 0 || self.burst_bytes > 1 << 30 {
            let remedy = "use MTU + 14 bytes to 1 GiB";
            return Err(Error::OutOfRange {
                what: "tbf burst",
                value: self.burst_bytes.to_string(),
                remedy,
            });
        }
        Ok(())
    }

    /// The request that sets these parameters on the root of `ifindex`.
    fn message(&self, ifindex: u32) -> RouteNetlinkMessage {
        let mut options = vec![TcOption::Other(DefaultNla::new(
            TCA_TBF_PARMS,
            self.parameters(),
        ))];
        if self.rate_bytes_per_s > u64::from(u32::MAX) {
            let rate = self.rate_bytes_per_s.to_ne_bytes().to_vec();
            options.push(TcOption::Other(DefaultNla::new(TCA_TBF_RATE64, rate)));
        }
        let burst = self.burst_bytes.to_ne_bytes().to_vec();
        options.push(TcOption::Other(DefaultNla::new(TCA_TBF_BURST, burst)));
        let mut message = TcMessage::with_index(ifindex as i32);
        message.header.handle = TcHandle { major: 1, minor: 0 };
        message.header.parent = TcHandle::ROOT;
        message.attributes = vec![
            TcAttribute::Kind("tbf".into()),
            TcAttribute::Options(options),
        ];
        RouteNetlinkMessage::NewQueueDiscipline(message)
    }

    /// The change request as bytes, with an acknowledgement asked for.
    pub(crate) fn change_request(&self, ifindex: u32, sequence: u32) -> Vec<u8> {
        encode(self.message(ifindex), NLM_F_ACK, sequence)
    }

    /// The request that makes it the root of `ifindex` where there is none, as bytes.
    pub(crate) fn create_request(&self, ifindex: u32) -> Vec<u8> {
        encode(
            self.message(ifindex),
            NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
            0,
        )
    }
}

/// The request that takes the root queueing discipline of `ifindex` away, as bytes.
pub(crate) fn remove_request(ifindex: u32) -> Vec<u8> {
    let mut message = TcMessage::with_index(ifindex as i32);
    message.header.parent = TcHandle::ROOT;
    encode(
        RouteNetlinkMessage::DelQueueDiscipline(message),
        NLM_F_ACK,
        0,
    )
}

/// Makes a tbf the root queueing discipline of an interface; what was there is gone.
pub fn replace(netlink: &mut Netlink, ifindex: u32, tbf: &Tbf) -> Result<()> {
    tbf.check()?;
    let what = format!("put {tbf:?} on interface {ifindex}");
    netlink.change(&what, tbf.message(ifindex), NLM_F_CREATE | NLM_F_REPLACE)
}

/// Changes the parameters of the tbf on an interface, keeping its queue; the bucket is full afterwards.
pub fn change(netlink: &mut Netlink, ifindex: u32, tbf: &Tbf) -> Result<()> {
    tbf.check()?;
    let what = format!("change the tbf of interface {ifindex} to {tbf:?}");
    netlink.change(&what, tbf.message(ifindex), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `strace -e sendmsg tc qdisc replace dev eth0 root tbf rate 100mbit burst 50000 limit 1000000
    /// overhead 24 mpu 84` shows the same ratespec: linklayer 1, overhead 24, mpu 84, rate 12500000.
    #[test]
    fn the_bytes_are_those_of_tc() {
        let bytes = Tbf::ethernet(12_500_000, 50_000).parameters();
        assert_eq!(bytes.len(), 36);
        let spec = [0, 1, 24, 0, 0, 0, 84, 0, 0x20, 0xbc, 0xbe, 0];
        assert_eq!(bytes[..12], spec);
        assert_eq!(bytes[24..28], LIMIT_BYTES.to_ne_bytes());
    }

    #[test]
    fn large_rates_and_bad_values() {
        let fast = Tbf::ethernet(12_500_000_000, 1 << 20);
        assert_eq!(fast.parameters()[8..12], u32::MAX.to_ne_bytes());
        assert!(
            fast.change_request(1, 1).len() > Tbf::ethernet(1, 1514).change_request(1, 1).len()
        );
        assert!(Tbf::ethernet(0, 1514).check().is_err() && Tbf::ethernet(1, 0).check().is_err());
    }
}
